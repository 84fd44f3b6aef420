"""Reads the tasks of two runs: their content, and the numbers of their rollouts."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from reward_profiling import wire
from reward_profiling.choosing.comparing.pairing import RunTask
from reward_profiling.choosing.comparing.task_pairs import Side
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.choosing.row_matching import Contents, contents_of
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.units import Unit, units_of
from reward_profiling.numerics.uncertainty import variance
from reward_profiling.planning.on_disk.plan_file import read_labels, read_plan
from reward_profiling.planning.row_members import TaskIndex
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.run_reading import read_rollout_table


class PlanContents(NamedTuple):
    """What the tasks of one plan say."""

    by_task: dict[TaskIndex, Contents]
    columns: frozenset[str]
    """Names of all that rows hold, Gym's stamps left out."""


class BothPlans(NamedTuple):
    """What the tasks of two plans say, by columns that both have."""

    baseline: PlanContents
    candidate: PlanContents
    left_out: list[str]
    """Columns that only one's rows hold, such as a note, by name."""


def read_both_plans(baseline: Path, candidate: Path) -> BothPlans:
    """Read what the tasks of two plans say.

    Raises:
        ConfigError: a plan cannot be read.
        RecordError: a line cannot be read; names file and line.
    """
    before, after = _read_plan(baseline), _read_plan(candidate)
    has_both = before.columns and after.columns
    added = sorted(before.columns ^ after.columns) if has_both else []
    if added:
        before, after = _read_plan(baseline, added), _read_plan(candidate, added)
    return BothPlans(before, after, added)


def _read_plan(path: Path, left_out: Collection[str] = ()) -> PlanContents:
    contents: dict[TaskIndex, Contents] = {}
    first: dict[TaskIndex, int] = {}
    columns: set[str] = set()
    for planned in read_plan(path):
        index, row = planned.task_index, planned.members
        repeat = _repeat(row)
        # Each repeat may have its own seed, so repeats differ: use the first repeat,
        # wherever it is in the file.
        if index is not None and repeat < first.get(index, repeat + 1):
            first[index] = repeat
            # Which agent runs it is a key of its own.
            for name in (wire.AGENT_REF, wire.SKILLS_REF, *left_out):
                row.pop(name, None)
            columns |= {name for name in row if not name.startswith(wire.NG_PREFIX)}
            contents[index] = contents_of(row)
    return PlanContents(contents, frozenset(columns))


def _repeat(row: Mapping[str, object]) -> int:
    """Return a row's rollout index; those that are no numbers count as the first."""
    found = row.get(wire.ROLLOUT_INDEX)
    return found if isinstance(found, int) else 0


def read_tasks(
    files: RunFiles, plan: PlanContents, options: CompareOptions
) -> list[RunTask]:
    """Return one entry per (task, agent) of an output, in the order of its table.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line cannot be read; names file and line.
    """
    table = read_rollout_table(files)
    labels = read_labels(files.materialized_inputs)
    reading = ProfileOptions(pass_threshold=options.pass_threshold)
    tasks = []
    for unit in units_of(table, reading):
        index = table.tasks[unit.task]
        tasks.append(
            RunTask(
                table.agents[unit.agent],
                plan.by_task[index],
                index,
                _side(unit, index, options),
                labels.get(index),
            )
        )
    return tasks


def _side(unit: Unit, index: TaskIndex, options: CompareOptions) -> Side | None:
    if not unit.n:
        return None
    if options.measure == "reward":
        return Side(index, unit.n, unit.c, unit.mean, unit.variance)
    passes = [1.0] * unit.c + [0.0] * (unit.n - unit.c)
    return Side(index, unit.n, unit.c, unit.c / unit.n, variance(passes))
