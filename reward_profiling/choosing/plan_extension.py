"""Extends a plan by repeats of the tasks that are still undecided.

A new line is an old one of its task with the next rollout index, so keys and bytes are
those of a plan with more repeats. New lines go to the end, and the whole file is
replaced. The manifest marks the plan as adaptive, so that running the same command
again keeps every line.
"""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from reward_profiling import wire
from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    TaskState,
    next_round,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.units import units_of
from reward_profiling.planning.on_disk.plan_file import (
    PlanRow,
    extend_plan,
    read_plan,
)
from reward_profiling.planning.on_disk.run_manifest import mark_adaptive, read_manifest
from reward_profiling.planning.row_members import NO_AGENT, TaskIndex
from reward_profiling.planning.task_rows import seeded_metadata
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.run_reading import read_rollout_table


def grow_plan(
    files: RunFiles, options: AdaptiveOptions, reading: ProfileOptions
) -> AdaptiveSummary:
    """Plan the next round from what was collected, and say what it comes to.

    The caller holds the output's lock, and shards are merged. Where nothing is open,
    or nothing more may be planned, no file is touched.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line or the manifest cannot be read; names the file.
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    more, summary = next_round(_states(files, reading), options)
    if more:
        # The mark first and the number last: a kill in between leaves a plan that the
        # same command keeps, and that has no fewer lines than its manifest says.
        mark_adaptive(files)
        _append(files, more)
        mark_adaptive(files, summary.planned)
    return summary


def wants_more(
    files: RunFiles, options: AdaptiveOptions, reading: ProfileOptions
) -> bool:
    """Say whether an adaptive plan that owes nothing would grow; touches no file.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line cannot be read; names file and line.
    """
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


def _append(files: RunFiles, more: Mapping[Hashable, int]) -> None:
    path = files.materialized_inputs
    growing = _read(path, more)
    is_seeded = bool(read_manifest(files).settings.get("num_repeats_add_seed"))
    extend_plan(path, _new_lines(growing, more, is_seeded=is_seeded))


class _Growing(NamedTuple):
    """What of the plan is needed to add to it."""

    samples: dict[Hashable, PlanRow]
    """The first line of each (task index, agent) that gets more."""
    following: dict[TaskIndex, int]
    """The next free rollout index of each task."""


def _read(path: Path, more: Mapping[Hashable, int]) -> _Growing:
    samples: dict[Hashable, PlanRow] = {}
    following: dict[TaskIndex, int] = {}
    for row in read_plan(path):
        task, rollout = row.key
        known = following.get(task, 0)
        after = rollout + 1 if isinstance(rollout, int) else known + 1
        following[task] = max(known, after)
        # Rollouts are counted under their agent, else under their server.
        server = NO_AGENT if row.server is None else row.server
        key = task, row.agent or server
        if key in more:
            samples.setdefault(key, row)
    return _Growing(samples, following)


def _new_lines(
    growing: _Growing, more: Mapping[Hashable, int], *, is_seeded: bool
) -> Iterator[bytes]:
    following = growing.following
    for key, sample in growing.samples.items():
        row, task = sample.members, sample.members[wire.TASK_INDEX]
        for index in range(following[task], following[task] + more[key]):
            row[wire.ROLLOUT_INDEX] = index
            if is_seeded:
                params = row[wire.PARAMS]
                params["metadata"] = seeded_metadata(params, index)
            yield orjson.dumps(row)
        following[task] += more[key]
