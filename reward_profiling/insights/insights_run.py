"""Insights: turns the plan, records and failures of an output into insights."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from reward_profiling.collecting.on_disk.timings import lost_replies, read_timings
from reward_profiling.files.own_version import made_by
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import spelled
from reward_profiling.insights.completion_curve import completion_curve
from reward_profiling.insights.document import Insights, derive
from reward_profiling.insights.insights_file import replace_insights
from reward_profiling.insights.task_insights import TaskInsight
from reward_profiling.planning.on_disk.plan_file import read_labels
from reward_profiling.planning.on_disk.run_manifest import known_model
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.records.record_answers import read_answers
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.run_reading import read_rollout_table
from reward_profiling.profiling.summary.run_summary import RunSummary


def write_insights(
    files: RunFiles,
    options: ProfileOptions,
    *,
    inputs: Path | None = None,
    rollouts: Sequence[Path] = (),
) -> Insights:
    """Write `<stem>_insights.json` and return all of it except its tasks.

    `inputs` is the plan and `rollouts` the files of records, if they are not the
    output's own.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line does not belong to the run; names file and line.
    """
    plan = inputs or files.materialized_inputs
    records = rollouts or [files.rollouts]
    table = read_rollout_table(files, inputs=plan, rollouts=records)
    answers = None
    if options.answer_field is not None:
        answers = _answers(table, records, options.answer_field)
    derived = derive(table, options, answers)
    timings = _Timings(files.timings)
    head = msgspec.structs.replace(
        derived.head,
        made_by=made_by(),
        output=spelled(files.rollouts.name),
        model=known_model(files),
        completion=completion_curve(timings.finished()),
        replies_lost=timings.replies_lost if files.timings.exists() else None,
    )
    replace_insights(files.insights, head, _labelled(derived.tasks, plan))
    return head


class _Timings:
    """The timings of an output, read once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.replies_lost = 0

    def finished(self) -> Iterator[tuple[float, float]]:
        """Yield (start time, seconds taken) of each finished rollout."""
        for timing in read_timings(self._path):
            self.replies_lost += timing.replies_lost
            if timing.started is not None:
                yield timing.started, timing.seconds


def add_insights(
    summary: RunSummary,
    files: RunFiles,
    options: ProfileOptions,
    *,
    inputs: Path | None = None,
    rollouts: Sequence[Path] = (),
) -> RunSummary:
    """Write the insights, and return the summary with their findings.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line does not belong to the run; names file and line.
    """
    head = write_insights(files, options, inputs=inputs, rollouts=rollouts)
    return replace(
        summary,
        findings=(*head.findings, *summary.findings),
        files=(*summary.files, str(files.insights)),
        warnings=(*summary.warnings, *_warnings(head, options)),
    )


def _warnings(head: Insights, options: ProfileOptions) -> Iterator[str]:
    if lost := head.replies_lost:
        yield f"over all runs, {lost_replies(lost)}"
    if options.leave_out_empty:
        length = head.run.length
        yield (
            f"{length.num_empty} of {length.num_empty_known} records hold no answer:"
            " insights leave them out; the table of agents and Gym's files count them"
        )
    if options.answer_field and head.run.passing.majority is None:
        yield (
            f"no scored record has the field {options.answer_field!r}, so there is no"
            " majority answer"
        )


def _labelled(tasks: Iterable[TaskInsight], plan: Path) -> Iterator[TaskInsight]:
    labels = read_labels(plan)
    for task in tasks:
        yield msgspec.structs.replace(task, label=labels.get(task.task_index))


def _answers(table: RolloutTable, rollouts: Sequence[Path], field: str) -> "array[int]":
    """Return the digest of each row's answer; 0 where its record has none."""
    rows = {
        (table.tasks[table.task[row]], table.rollout[row]): row
        for row in range(len(table))
    }
    answers = array("q", bytes(8 * len(table)))
    # If a rollout has two records, the first one counts: it is written last here.
    for path in reversed(rollouts):
        for key, digest in read_answers(path, field):
            if key in rows:
                answers[rows[key]] = digest
    return answers
