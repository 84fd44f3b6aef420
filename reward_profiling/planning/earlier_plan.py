"""The plan that an output already has: what may change of it, and what may not.

A planned rollout may be paid for: it keeps its key and its bytes. A plan grows by more
repeats and by rows appended at the end; any other change is refused and told, with old
and new value (`design.md`, decision 4).
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.errors import PlanChangedError, RecordError
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    read_lines,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_changes import differences
from reward_profiling.planning.planner import PlannedKey
from reward_profiling.planning.row_members import (
    RolloutKey,
    agent_name,
    rollout_key,
    shown_keys,
)

ADAPTIVE = "adaptive"
"""Member of the manifest that says so."""
_SHOWN_CHANGES = 10
PlanLines = Iterable[tuple[RolloutKey, bytes]]


@dataclass(slots=True)
class EarlierPlan:
    """The plan on disk; empty when there is none."""

    fingerprints: dict[RolloutKey, bytes] = field(default_factory=dict)
    """A digest of each line, by its key."""
    indices: dict[PlannedKey, list[int]] = field(default_factory=dict)
    """Rollout indices by task index and what runs them, ascending."""
    is_adaptive: bool = False
    """Whether tasks were given more repeats than the options say (`adapting`)."""

    def has(self, key: RolloutKey, text: bytes) -> bool:
        """Say whether the line of a key is this one."""
        return self.fingerprints.get(key) == _fingerprint(text)


def read_earlier_plan(files: RunFiles) -> EarlierPlan:
    """Read the plan on disk.

    Raises:
        PlanChangedError: there are rollouts without a plan.
        RecordError: a line cannot be read; names file and line.
    """
    path = files.materialized_inputs
    earlier = EarlierPlan()
    if not path.exists():
        _refuse_orphans(files)
        return earlier
    for line in read_lines(path):
        with located(path, line.number):
            row = parse_object(line.text)
            key, agent = rollout_key(row), agent_name(row)
        earlier.fingerprints[key] = _fingerprint(line.text)
        for runner in _runners(row, agent):
            if isinstance(key[1], int):
                earlier.indices.setdefault((key[0], runner), []).append(key[1])
    for indices in earlier.indices.values():
        indices.sort()
    earlier.is_adaptive = bool(_manifest(files).get(ADAPTIVE))
    return earlier


def _runners(row: dict[str, Any], agent: str | None) -> list[tuple[str, bool]]:
    """Return what may have run a planned row: the row does not say which decided."""
    server = row.get(wire.ENVIRONMENT_SERVER)
    stamped = [(server, True)] if isinstance(server, str) else []
    return [(agent or "", False), *stamped]


def _refuse_orphans(files: RunFiles) -> None:
    if is_collected(files):
        raise PlanChangedError(
            f"{files.rollouts} already holds rollouts, but its plan"
            f" {files.materialized_inputs.name} is not beside it. Nothing was touched:"
            " put the plan back to resume, or give another --output"
        )


def is_collected(files: RunFiles) -> bool:
    """Say whether something was already paid for under this output."""
    paths = [files.rollouts, files.failures, *(s.rollouts for s in files.shards())]
    return any(path.exists() and path.stat().st_size for path in paths)


def _fingerprint(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()


class Growth:
    """Compares a new plan with the earlier one, line by line."""

    def __init__(self, earlier: EarlierPlan) -> None:
        self.earlier = earlier
        self._kept = 0
        self.num_new = 0
        self.first_changed: RolloutKey | None = None

    def see(self, key: RolloutKey, text: bytes) -> None:
        """Take the next line of the new plan."""
        old = self.earlier.fingerprints.get(key)
        if old is None:
            self.num_new += 1
            return
        self._kept += 1
        if old != _fingerprint(text) and self.first_changed is None:
            self.first_changed = key

    @property
    def num_planned(self) -> int:
        """Rollouts of the new plan."""
        return self._kept + self.num_new

    @property
    def num_lost(self) -> int:
        """Planned rollouts that the new plan does not have."""
        return len(self.earlier.fingerprints) - self._kept

    @property
    def is_change(self) -> bool:
        """Whether the new plan does more than grow."""
        return self.first_changed is not None or self.num_lost > 0


def plan_changed(
    files: RunFiles, growth: Growth, lines: PlanLines, settings: dict[str, Any]
) -> PlanChangedError:
    """Return the refusal of a new plan: what differs, old and new, and the way out."""
    changes = [*_changed_settings(files, settings)]
    if growth.first_changed is not None:
        where = shown_keys([growth.first_changed])
        old, new = _both_rows(files, lines, growth.first_changed)
        told = set(changes)  # a setting's own name says more than a row's
        changes += [
            f"{change}  (first at {where})"
            for change in differences(old, new)
            if change not in told
        ]
    if growth.num_lost:
        changes.append(f"{growth.num_lost} planned rollouts would be dropped")
    listed = "\n".join(f"  {change}" for change in changes[:_SHOWN_CHANGES])
    return PlanChangedError(
        f"{files.rollouts} holds rollouts of another plan; nothing was touched."
        f"\n{listed}\nResume with the old settings and the old rows in their order"
        " (more repeats, and rows appended at the end, are welcome), or give another"
        " --output for a new run."
    )


def _changed_settings(files: RunFiles, settings: dict[str, Any]) -> Iterator[str]:
    old = _manifest(files)
    if not old:
        return
    # An option younger than the manifest had its default.
    defaults = asdict(PlanOptions())
    yield from differences({**defaults, **old.get("settings", {})}, settings)


def _manifest(files: RunFiles) -> dict[str, Any]:
    if not files.run.exists():
        return {}
    try:
        with open_to_read(files.run) as file:
            return parse_object(file.read())
    except RecordError:
        return {}  # the plan itself is the truth; the manifest only names settings


def _both_rows(
    files: RunFiles, lines: PlanLines, key: RolloutKey
) -> tuple[dict[str, Any], dict[str, Any]]:
    old = next(
        row
        for line in read_lines(files.materialized_inputs)
        if rollout_key(row := parse_object(line.text)) == key
    )
    new = next(text for found, text in lines if found == key)
    return old, orjson.loads(new)
