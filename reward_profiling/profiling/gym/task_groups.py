"""The measured records of each task, or of each task and label."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reward_profiling.numerics.index_column import Index
from reward_profiling.numerics.number_column import gathered
from reward_profiling.profiling.gym.measured_records import MeasuredRecords
from reward_profiling.profiling.gym.metric_columns import Rows
from reward_profiling.profiling.key_order import task_spans

_CHUNK_ROWS = 2_048
_NOTHING = (0, 0)


class TaskGroup(msgspec.Struct, frozen=True):
    """The measured records of one task (and label)."""

    task: Index
    label: str | None
    """None where each task went to one label."""
    rows: Rows
    expected: int
    """Rollouts that were planned."""


def group_by_task(measured: MeasuredRecords) -> Iterator[TaskGroup]:
    """Group records by task, or by task and label where a task went to several."""
    planned_tasks = gathered(measured.plan.task, measured.planned)
    planned_runners = gathered(measured.plan.runner, measured.planned)
    spans = list(task_spans(planned_tasks))
    is_fan_out = len(set(measured.labels)) > 1 and any(
        len({measured.labels[runner] for runner in set(planned_runners[start:stop])})
        > 1
        for start, stop in spans
    )
    tasks = gathered(measured.records.task, measured.rows)
    measured_spans = task_spans(tasks)
    first, last = next(measured_spans, _NOTHING)
    for start, stop in spans:
        task = planned_tasks[start]
        if first == last or tasks[first] != task:
            continue  # nothing of this task was measured
        rows = measured.rows[first:last]
        first, last = next(measured_spans, _NOTHING)
        if not is_fan_out:
            yield TaskGroup(task, None, rows, stop - start)
            continue
        expected = [measured.labels[runner] for runner in planned_runners[start:stop]]
        for label, members in measured.by_label(rows).items():
            yield TaskGroup(task, label, members, expected.count(label))


def in_chunks(groups: Iterable[TaskGroup]) -> Iterator[list[TaskGroup]]:
    """Put groups together, so that columns are not gone to for each."""
    chunk: list[TaskGroup] = []
    count = 0
    for group in groups:
        chunk.append(group)
        count += len(group.rows)
        if count >= _CHUNK_ROWS:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def joined_rows(groups: Sequence[TaskGroup]) -> Rows:
    """Return the rows of groups, one group after another."""
    parts = [group.rows for group in groups]
    first, last = parts[0][0], parts[-1][-1]
    is_whole = all(isinstance(part, range) for part in parts)
    if is_whole and sum(map(len, parts)) == last + 1 - first:
        return range(first, last + 1)
    return [row for part in parts for row in part]
