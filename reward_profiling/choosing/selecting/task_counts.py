"""What decides about each task: the scored rollouts of one agent."""

from collections.abc import Mapping
from pathlib import Path

from reward_profiling.choosing.selecting.task_verdicts import Counts
from reward_profiling.choosing.selection import SelectOptions
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.interpretation import interpret
from reward_profiling.insights.units import units_of
from reward_profiling.planning.row_members import TaskIndex
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.run_reading import read_rollout_table

CountsByAgent = Mapping[str, Counts]


def read_counts(
    files: RunFiles, plan: Path, options: SelectOptions
) -> dict[TaskIndex, Counts]:
    """Return what decides about each task that the chosen agent ran, by task index.

    Raises:
        ConfigError: a file cannot be read, or tasks were run by several agents and
            none was named, or nothing by the one that was.
        RecordError: a line cannot be read; names file and line.
    """
    by_task = _counts_by_agent(files, plan, options)
    if options.agent is not None:
        return _of_agent(by_task, options.agent)
    for task, by_agent in by_task.items():
        if len(by_agent) > 1:
            raise ConfigError(
                f"task {task} was run by several agents ({', '.join(by_agent)}); say"
                " whose rollouts decide with --agent"
            )
    return {task: next(iter(by.values())) for task, by in by_task.items()}


def _counts_by_agent(
    files: RunFiles, plan: Path, options: SelectOptions
) -> dict[TaskIndex, dict[str, Counts]]:
    reading = ProfileOptions(
        pass_threshold=options.pass_threshold,
        signal_tolerance=options.signal_tolerance,
        leave_out_empty=options.leave_out_empty,
    )
    table = interpret(read_rollout_table(files, inputs=plan), reading)
    counts: dict[TaskIndex, dict[str, Counts]] = {}
    for unit in units_of(table, reading):
        by_agent = counts.setdefault(table.tasks[unit.task], {})
        by_agent[table.agents[unit.agent]] = Counts(unit.n, unit.c, unit.has_signal)
    return counts


def _of_agent(
    by_task: Mapping[TaskIndex, CountsByAgent], agent: str
) -> dict[TaskIndex, Counts]:
    chosen = {task: by[agent] for task, by in by_task.items() if agent in by}
    if not chosen:
        known = sorted({name for by_agent in by_task.values() for name in by_agent})
        raise ConfigError(
            f"agent {agent!r} ran none of the tasks; there are {', '.join(known)}"
        )
    return chosen
