"""Adapt: a plan grows by repeats of the tasks that are still open.

New lines are the old ones of their task with the next rollout index, so that keys and
bytes are what a plan with more repeats would have given. They are put at the end; the
file is replaced whole. The manifest says that the plan is adaptive, so that the same
command keeps every line that it has.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import orjson

from reward_profiling import wire
from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    TaskState,
    next_round,
)
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    read_lines,
    replace_bytes,
    replace_file,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.units import units_of
from reward_profiling.planning.earlier_plan import ADAPTIVE
from reward_profiling.planning.row_members import NO_AGENT, agent_name, rollout_key
from reward_profiling.planning.task_rows import seeded_metadata
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.table_of_output import read_rollout_table

_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(slots=True)
class _Growing:
    """What of the plan is needed to add to it."""

    samples: dict[Hashable, bytes] = field(default_factory=dict)
    """A line of each (task index, agent) that gets more."""
    following: dict[Any, int] = field(default_factory=dict)
    """The next free rollout index of each task."""


def grow_plan(
    files: RunFiles, options: AdaptiveOptions, reading: ProfileOptions
) -> AdaptiveSummary:
    """Plan the next round from what was collected, and say what it comes to.

    The caller holds the output's lock, and shards are merged. Where nothing is open,
    or nothing more may be planned, no file is touched.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line cannot be read; names file and line.
    """
    more, summary = next_round(_states(files, reading), options)
    if more:
        _mark_adaptive(files, summary.planned)
        _append(files, more)
    return summary


def wants_more(
    files: RunFiles, options: AdaptiveOptions, reading: ProfileOptions
) -> bool:
    """Say whether an adaptive plan that owes nothing would grow; touches no file."""
    if not (options.adaptive and files.rollouts.exists()):
        return False
    return bool(next_round(_states(files, reading), options).more)


def _states(files: RunFiles, reading: ProfileOptions) -> list[TaskState]:
    table = read_rollout_table(files)
    return [
        TaskState(
            (table.tasks[unit.task], table.agents[unit.agent]),
            len(unit.rows),
            unit.n,
            unit.c,
        )
        for unit in units_of(table, reading)
    ]


def _mark_adaptive(files: RunFiles, planned: int) -> None:
    """Say in the manifest that the plan is adaptive.

    That is done before it is, so that a kill in between leaves a plan that the same
    command keeps.
    """
    if not files.run.exists():
        return  # a directory of Gym's has none
    made = _manifest(files)
    made[ADAPTIVE] = True
    made.setdefault("plan", {})["num_rollouts"] = planned
    replace_bytes(files.run, orjson.dumps(made, option=_INDENT))


def _manifest(files: RunFiles) -> dict[str, Any]:
    with open_to_read(files.run) as file, located(files.run, 1):
        return parse_object(file.read())


def _append(files: RunFiles, more: Mapping[Hashable, int]) -> None:
    plan = files.materialized_inputs
    growing = _read(files, more)
    is_seeded = files.run.exists() and bool(
        _manifest(files).get("settings", {}).get("num_repeats_add_seed")
    )

    def write(file: IO[bytes]) -> None:
        for line in read_lines(plan):
            file.write(line.text + b"\n")
        for text in _new_lines(growing, more, is_seeded=is_seeded):
            file.write(text + b"\n")

    replace_file(plan, write)


def _read(files: RunFiles, more: Mapping[Hashable, int]) -> _Growing:
    growing = _Growing()
    plan = files.materialized_inputs
    for line in read_lines(plan):
        with located(plan, line.number):
            row = parse_object(line.text)
            task, rollout = rollout_key(row)
            key = task, _runner(row)
        known = growing.following.get(task, 0)
        after = rollout + 1 if isinstance(rollout, int) else known + 1
        growing.following[task] = max(known, after)
        if key in more:
            growing.samples.setdefault(key, line.text)
    return growing


def _runner(row: Mapping[str, Any]) -> str:
    """Return the name that the row's rollouts are counted under."""
    stamp = row.get(wire.ENVIRONMENT_SERVER)
    return agent_name(row) or (stamp if isinstance(stamp, str) else NO_AGENT)


def _new_lines(
    growing: _Growing, more: Mapping[Hashable, int], *, is_seeded: bool
) -> Iterator[bytes]:
    for key, text in growing.samples.items():
        row = parse_object(text)
        task = row[wire.TASK_INDEX]
        for _ in range(more[key]):
            index = growing.following[task]
            growing.following[task] += 1
            row[wire.ROLLOUT_INDEX] = index
            if is_seeded:
                params = row[wire.PARAMS]
                params["metadata"] = seeded_metadata(params, index)
            yield orjson.dumps(row)
