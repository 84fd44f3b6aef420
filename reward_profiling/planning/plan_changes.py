"""What must not change in an output from run to run: its plan, its model, its name.

A plan may grow: more repeats, and rows appended at the end. A planned rollout never
changes, because its record may already exist (`design.md`, decision 4). A refusal
shows the old and the new value, and what to do.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from reward_profiling.errors import ConfigError, PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.earlier_plan import Growth, is_collected
from reward_profiling.planning.on_disk.plan_file import read_plan
from reward_profiling.planning.on_disk.run_manifest import (
    POLICY_MODEL,
    read_manifest,
    sound_manifest,
)
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.row_members import RolloutKey, shown_keys

_SHOWN_CHANGES = 10
_SHOWN_CHARACTERS = 80
KeyedLines = Iterable[tuple[RolloutKey, bytes]]
"""The lines of a plan with their keys, as often as they are asked for."""


def plan_changed(
    files: RunFiles, growth: Growth, lines: KeyedLines, settings: dict[str, Any]
) -> PlanChangedError:
    """Return the refusal of a new plan: the differences, and what to do.

    `growth` has seen the new plan's `lines`; `settings` are what they were made by.
    """
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
        f"{files.rollouts} holds rollouts of another plan; nothing was changed."
        f"\n{listed}\nTo resume, use the old settings and the old rows in their order"
        " (you may add repeats, and append rows at the end). For a new run, give"
        " another --output."
    )


def _changed_settings(files: RunFiles, settings: dict[str, Any]) -> Iterator[str]:
    manifest = sound_manifest(files)
    if not manifest.members:
        return
    # An option younger than the manifest had its default.
    defaults = asdict(PlanOptions())
    yield from differences({**defaults, **manifest.settings}, settings)


def _both_rows(
    files: RunFiles, lines: KeyedLines, key: RolloutKey
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row of a key in the plan on disk, and in the new one."""
    plan = read_plan(files.materialized_inputs)
    old = next(row.members for row in plan if row.key == key)
    new = next(text for found, text in lines if found == key)
    return old, orjson.loads(new)


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401
    """Yield `path: old → new` for every leaf in which two JSON values differ.

    A name that only one side has shows the other as "(none)".
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in old:
                yield f"{inner}: (none) → {shown(new[name])}"
            elif name not in new:
                yield f"{inner}: {shown(old[name])} → (none)"
            else:
                yield from differences(old[name], new[name], inner)
    elif old != new or type(old) is not type(new):
        yield f"{path}: {shown(old)} → {shown(new)}"


def shown(value: object) -> str:
    """Return a value as JSON, cut to 80 characters."""
    text = orjson.dumps(value).decode()
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[:_SHOWN_CHARACTERS] + "…"


def refuse_other_model(files: RunFiles, model: str | None) -> None:
    """Refuse to mix rollouts of two models in one output.

    Rewards of two models in one file measure neither. The name is the servers'
    `policy_model_name`; if it is unknown, nothing is checked.

    Raises:
        PlanChangedError: the output holds rollouts of another model.
    """
    known = sound_manifest(files).policy_model
    if model and known and known != model and is_collected(files):
        raise PlanChangedError(
            f"{files.rollouts} holds rollouts of another model; nothing was changed."
            f"\n  {POLICY_MODEL}: {known} → {model}"
            "\nTo resume, start the servers with the old model. For a new run, give"
            " another --output."
        )


def refuse_other_output(files: RunFiles) -> None:
    """Refuse an output whose files are named like those of another one.

    All files but the rollouts are named from the stem, as Gym names them: `run.v1` and
    `run.v2` would share a plan and its failures.

    Raises:
        ConfigError: another output in the folder has these files.
        RecordError: the manifest is damaged; names the file.
    """
    name = read_manifest(files).output
    if name is not None and name != files.rollouts.name:
        raise ConfigError(
            f"{files.run} belongs to the output {name}, so {files.rollouts.name} would"
            " share its plan and failures. Give a name with another stem, such as"
            f" {files.rollouts.name.replace('.', '_')}.jsonl"
        )
