"""Select: a source file's rows are dealt into kept, rejected and undetermined.

The three files add up to the source: every row of it stands in exactly one of them, in
the bytes that it had.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from reward_profiling.choosing.selecting.dataset_folder import write_dataset
from reward_profiling.choosing.selecting.source_rows import read_source, tasks_of_rows
from reward_profiling.choosing.selecting.targets import (
    Targets,
    refuse_targets,
    write_rows,
)
from reward_profiling.choosing.selecting.task_counts import read_counts
from reward_profiling.choosing.selecting.task_verdicts import (
    Counts,
    Decision,
    decide,
    ordered,
)
from reward_profiling.choosing.selecting.totals import summary_of
from reward_profiling.choosing.selection import (
    VERDICTS,
    Order,
    SelectionSummary,
    SelectOptions,
    Verdict,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.row_members import TaskIndex


def select_rows(
    source: Path,
    files: RunFiles,
    targets: Targets,
    options: SelectOptions,
    *,
    inputs: Path | None = None,
) -> SelectionSummary:
    """Deal the rows of a source file by the rollouts that were made of them.

    `inputs` is the plan, where it is not the one beside the rollouts.

    Raises:
        ConfigError: a file cannot be read or would be overwritten, or the rows were
            run by several agents and none was named.
        DatasetError: rows and plan do not belong together.
        RecordError: a line cannot be read; names file and line.
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    options.require_rule()
    plan = inputs or files.materialized_inputs
    refuse_targets(targets, [source, files.rollouts, plan])
    rows = read_source(source, options)
    tasks = tasks_of_rows(rows, plan, options.notes)
    counts = read_counts(files, plan, options)
    decisions = [_decided(tasks[which], counts, options) for which in rows.distinct]
    dealt = _dealt(decisions, options.order)
    write_rows(rows, targets, dealt, decisions, options)
    num_tasks = len(set(tasks) - {None})
    summary = summary_of(
        rows, decisions, options, num_tasks=num_tasks, files=targets.written
    )
    if targets.dataset_folder is not None:
        write_dataset(targets.dataset_folder, targets.kept, summary)
    return summary


def _decided(
    task: TaskIndex | None, counts: Mapping[TaskIndex, Counts], options: SelectOptions
) -> Decision:
    if task is not None and task not in counts:
        return Decision("undetermined", f"not run by {options.agent}")
    return decide(None if task is None else counts[task], options)


def _dealt(decisions: Sequence[Decision], order: Order) -> dict[Verdict, list[int]]:
    """Return the rows of each verdict, in the order that they are written in."""
    dealt: dict[Verdict, list[int]] = {verdict: [] for verdict in VERDICTS}
    for place, decision in enumerate(decisions):
        dealt[decision.verdict].append(place)
    kept = dealt["kept"]
    rates = [decisions[place].rate or Fraction() for place in kept]
    dealt["kept"] = [kept[place] for place in ordered(rates, order)]
    return dealt
