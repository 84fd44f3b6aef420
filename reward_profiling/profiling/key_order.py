"""Rollout keys in order: task, then rollout; numbers before text."""

from collections.abc import Iterator, Sequence
from itertools import compress
from operator import eq, itemgetter, ne
from typing import Any

from reward_profiling.errors import RecordError
from reward_profiling.numerics.number_column import gathered
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.profiling.records.record_columns import RecordColumns

Keyed = PlanColumns | RecordColumns


def comparable_keys(*columns: Keyed) -> list[list[Any]]:
    """Return the keys of each as values whose order is that of the keys.

    Where all indices are whole numbers, a key is one number.
    """
    indices = [index for column in columns for index in (column.task, column.rollout)]
    if not any(isinstance(index, list) for index in indices):
        rollouts = [column.rollout for column in columns if len(column.rollout)]
        if min(map(min, rollouts), default=0) >= 0:
            span = 1 + max(map(max, rollouts), default=0)
            return [
                [task * span + r for task, r in zip(c.task, c.rollout, strict=True)]
                for c in columns
            ]
    return [
        [
            (isinstance(task, str), task, isinstance(rollout, str), rollout)
            for task, rollout in zip(c.task, c.rollout, strict=True)
        ]
        for c in columns
    ]


def ascending(keys: Sequence[Any]) -> Sequence[int]:
    """Return the positions of keys in ascending order; a range if they are already."""
    rows = range(len(keys))
    order = sorted(rows, key=keys.__getitem__)
    return rows if all(map(eq, order, rows)) else order


def equal_neighbours(keys: Sequence[Any]) -> Iterator[int]:
    """Return the positions whose key equals the next one."""
    return compress(range(len(keys)), map(eq, keys, keys[1:]))


def put_in_key_order(records: RecordColumns) -> list[int]:
    """Put records in ascending key order; of equal keys, the first read comes first.

    Returns the rows whose key the one before has already.

    Raises:
        RecordError: indices that cannot be ordered (text beside numbers).
    """
    _refuse_unordered(records)
    (keys,) = comparable_keys(records)
    order = ascending(keys)
    seconds = [at + 1 for at in equal_neighbours(gathered(keys, order))]
    if seconds:
        read = zip(keys, records.file, records.line, range(len(keys)), strict=True)
        order = list(map(itemgetter(3), sorted(read)))
    del keys  # as large as some columns
    if not isinstance(order, range):
        records.arrange(order)
    return seconds


def first_repeated(plan: PlanColumns) -> tuple[int, int]:
    """Return the first two rows of the lowest key that stands in a plan twice."""
    (keys,) = comparable_keys(plan)
    order = ascending(keys)
    at = next(equal_neighbours(gathered(keys, order)))
    return order[at], order[at + 1]


def _refuse_unordered(records: RecordColumns) -> None:
    if not isinstance(records.task, list) and not isinstance(records.rollout, list):
        return
    try:
        sorted(zip(records.task, records.rollout, strict=True))
    except TypeError as error:
        raise RecordError(
            "task or rollout indices are text in some records and numbers in others;"
            " use one kind, so that they can be put in order"
        ) from error


def task_spans(tasks: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield the (start, stop) of each run of equal tasks."""
    start = 0
    for boundary in compress(range(1, len(tasks)), map(ne, tasks, tasks[1:])):
        yield start, boundary
        start = boundary
    if start < len(tasks):
        yield start, len(tasks)
