"""The plan that an output already has, and how a new one compares with it.

Only a digest of each line is held, by its key.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import read_lines
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.plan_file import PlanRow, parsed_row
from reward_profiling.planning.on_disk.run_manifest import sound_manifest
from reward_profiling.planning.planned_tasks import PlannedKey
from reward_profiling.planning.row_members import RolloutKey


@dataclass(slots=True)
class EarlierPlan:
    """The plan on disk; empty when there is none."""

    fingerprints: dict[RolloutKey, bytes] = field(default_factory=dict)
    """A digest of each line, by its key."""
    indices: dict[PlannedKey, list[int]] = field(default_factory=dict)
    """Rollout indices by task index and what runs them, ascending."""
    is_adaptive: bool = False
    """Whether tasks were given more repeats than the options say."""
    num_damaged: int = 0
    """Lines that cannot be read: the new plan has to have them again."""
    is_lost: bool = False
    """Whether there is no plan although there are records."""

    def has(self, key: RolloutKey, text: bytes) -> bool:
        """Say whether the line of a key is this one, without its newline."""
        return self.fingerprints.get(key) == _fingerprint(text)


def read_earlier_plan(files: RunFiles) -> EarlierPlan:
    """Read the plan on disk; lines that are damaged are counted.

    Raises:
        ConfigError: the plan cannot be read.
    """
    path = files.materialized_inputs
    earlier = EarlierPlan()
    if not path.exists():
        earlier.is_lost = is_collected(files)
        return earlier
    for line in read_lines(path):
        try:
            row = parsed_row(path, line.number, line.text)
            key, runners = row.key, _runners(row)
        except RecordError:
            earlier.num_damaged += 1
            continue
        earlier.fingerprints[key] = _fingerprint(row.text)
        if isinstance(key[1], int):
            for runner in runners:
                earlier.indices.setdefault((key[0], runner), []).append(key[1])
    for indices in earlier.indices.values():
        indices.sort()
    earlier.is_adaptive = sound_manifest(files).is_adaptive
    if earlier.num_damaged:
        earlier.indices = _without_gaps(earlier)
    return earlier


def _without_gaps(earlier: EarlierPlan) -> dict[PlannedKey, list[int]]:
    """Return which indices a damaged plan had: those of lost lines are not free.

    The options say how many there were, unless tasks were given more.
    """
    if not earlier.is_adaptive:
        return {}
    return {
        key: list(range(indices[-1] + 1)) for key, indices in earlier.indices.items()
    }


def _runners(row: PlanRow) -> list[tuple[str, bool]]:
    """Return what may have run a planned row: the row does not say which decided."""
    stamped = [] if row.server is None else [(row.server, True)]
    return [(row.agent or "", False), *stamped]


def is_collected(files: RunFiles) -> bool:
    """Return whether the output has any record or failed attempt."""
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
        """Take the next line of the new plan, without its newline."""
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
