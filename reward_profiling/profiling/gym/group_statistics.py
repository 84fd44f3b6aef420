"""The statistics of many groups of one column at once, equal to one group's to the bit.

The r-th values of all groups of the same size are added up as one list: the same
additions in the same order, done by loops that Python does not interpret.
"""

import math
import sys
from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from operator import add, itemgetter, sub, truediv
from typing import Any, NamedTuple

from reward_profiling.numerics import moments
from reward_profiling.numerics.number_column import (
    Number,
    gathered,
    is_constant,
    positions_of,
)
from reward_profiling.numerics.uncertainty import MIN_VALUES
from reward_profiling.profiling.gym.metric_columns import (
    STATISTICS,
    MetricColumn,
    MetricColumns,
    Values,
    describe_column,
)

Column = list[Number | None]
_MOST_AT_ONCE = 128
"""Records of a group up to which they are added up in one pass (NumPy's block)."""
_HALF_OF_LARGEST = sys.float_info.max / 2


def describe_groups(
    columns: MetricColumns, values: Sequence[Values], sizes: Sequence[int]
) -> list[dict[str, Number]]:
    """Return `mean/… max/… min/… median/… std/…` of each group, stat-major.

    `values[c]` are the values of the c-th column, one group after another. A column
    without a value in a group is left out there; `std` of one value among several
    rows too.
    """
    if not columns.metrics:
        return [{} for _ in sizes]
    if is_constant(sizes):
        return _of_one_size(columns, values, sizes[0])
    starts = list(accumulate(sizes, initial=0))
    found: list[dict[str, Number]] = [{}] * len(sizes)
    for size, groups in positions_of(sizes).items():
        rows = [row for at in groups for row in range(starts[at], starts[at] + size)]
        chosen = [gathered(column, rows) for column in values]
        described = _of_one_size(columns, chosen, size)
        for at, statistics in zip(groups, described, strict=True):
            found[at] = statistics
    return found


def _of_one_size(
    columns: MetricColumns, values: Sequence[Values], size: int
) -> list[dict[str, Number]]:
    found = [
        _described(metric, columns, column, size)
        for metric, column in zip(columns.metrics, values, strict=True)
    ]
    keys = [f"{name}/{m.name}" for name in STATISTICS for m in columns.metrics]
    by_statistic = zip(*found, strict=True)
    rows = zip(*chain.from_iterable(by_statistic), strict=True)
    return [_named(keys, row) for row in rows]


def _named(keys: Sequence[str], row: Sequence[Number | None]) -> dict[str, Number]:
    named = zip(keys, row, strict=True)
    if None in row:
        return {key: value for key, value in named if value is not None}
    return dict(named)  # type: ignore[arg-type]


def _described(
    metric: MetricColumn, columns: MetricColumns, values: Values, size: int
) -> Sequence[Column]:
    """Return a column's statistics in order, each a list over the groups."""
    found = _statistics(metric, columns, values, size)
    average, most, least, middle, deviation = found
    # Those without a value are None; the others' zeros need no look.
    high, low = max(filter(None, most), default=0), min(filter(None, least), default=0)
    is_huge = max(high, -low) > _HALF_OF_LARGEST
    if not is_huge or not columns.adds_middle_twice(metric, size):
        return found
    twice = [None if m is None else moments.doubled(m) for m in middle]
    return average, most, least, twice, deviation


def _statistics(
    metric: MetricColumn, columns: MetricColumns, values: Values, size: int
) -> Sequence[Column]:
    if size <= _MOST_AT_ONCE:
        groups: _Groups | None
        if metric.full or None not in values:
            groups = _full(values, size, is_int=columns.every_int)  # type: ignore[arg-type]
        else:
            groups = _with_gaps(values, size)
        found = None if groups is None else _at_once(groups, size)
        if found is not None:
            return found
    described = [
        describe_column(
            values[start : start + size],
            whole=metric.whole,
            every_int=columns.every_int,
        )
        for start in range(0, len(values), size)
    ]
    return [[group.get(name) for group in described] for name in STATISTICS]


class _Groups(NamedTuple):
    """Values of groups of the same size."""

    ranked: Sequence[Sequence[Any]]
    """Of each group, the values that are there, ascending."""
    counts: Sequence[int]
    """How many these are: all, or at least two."""
    means: Sequence[float]
    numbers: Sequence[float]
    """All values, one group after another; the mean where one is missing, which adds
    nothing to the squares of the distances from it."""


def _full(values: Sequence[Number], size: int, *, is_int: bool) -> _Groups:
    """Read groups none of whose values is missing.

    `is_int` says that the largest and the smallest are written as whole numbers.
    """
    numbers = list(map(float, values))
    ordered = values if is_int else numbers
    starts = range(0, len(values), size)
    ranked = [sorted(ordered[start : start + size]) for start in starts]
    counts = [size] * len(ranked)
    means = list(map(truediv, _sums(_places(numbers, size)), counts))
    return _Groups(ranked, counts, means, numbers)


def _with_gaps(values: Sequence[float | None], size: int) -> _Groups | None:
    """Read groups some of whose values are missing; None where one has less than two.

    A missing value adds 0.0 in its place (see `moments.mean`).
    """
    starts = range(0, len(values), size)
    ranked = [
        sorted([v for v in values[start : start + size] if v is not None])
        for start in starts
    ]
    counts = list(map(len, ranked))
    if min(counts) < MIN_VALUES:
        return None
    filled = [0.0 if value is None else value for value in values]
    means = list(map(truediv, _sums(_places(filled, size)), counts))
    each = chain.from_iterable(map(repeat, means, repeat(size)))
    numbers = [m if v is None else v for v, m in zip(values, each, strict=True)]
    return _Groups(ranked, counts, means, numbers)


def _at_once(groups: _Groups, size: int) -> Sequence[Column] | None:
    """Describe groups; None where some result is no number."""
    ranked, counts, means, numbers = groups
    if size == 1:
        deviations = [0.0] * len(means)
    else:
        squares = [
            [(d := mean - value) * d for mean, value in zip(means, place, strict=True)]
            for place in _places(numbers, size)
        ]
        freedom = map(sub, counts, repeat(1))
        variances = map(truediv, _sums(squares), freedom)
        deviations = list(map(math.sqrt, variances))
    if any(map(math.isnan, chain(means, deviations))):
        return None
    return (
        [*means],
        [group[-1] for group in ranked],
        [group[0] or moments.least(group) for group in ranked],
        _medians(ranked, counts),
        [*deviations],
    )


def _places(numbers: Sequence[float], size: int) -> list[Sequence[float]]:
    """Return the r-th values of all groups, for each r."""
    return [numbers[place::size] for place in range(size)]


def _medians(groups: Sequence[Sequence[float]], counts: Sequence[int]) -> Column:
    """Return the median of each ascending group (see `moments.median`)."""
    count = counts[0]
    if not is_constant(counts):
        return list(map(moments.median, groups))
    middle = count // 2
    upper = map(add, repeat(0.0), map(itemgetter(middle), groups))
    if count % 2:
        return list(upper)
    lower = map(add, repeat(0.0), map(float, map(itemgetter(middle - 1), groups)))
    total = map(add, lower, map(float, map(itemgetter(middle), groups)))
    return list(map(truediv, total, repeat(2.0)))


def _sums(places: Sequence[Sequence[float]]) -> list[float]:
    """Add up each group's values, `places[r]` being the r-th of each (NumPy's order).

    See `moments.pairwise_sum`; there are at most 128 places.
    """
    count = len(places)
    whole = count - count % moments.LANES
    if not whole:
        total = list(places[0])
        rest = places[1:]
    else:
        lanes: list[Sequence[float]] = list(places[: moments.LANES])
        for base in range(moments.LANES, whole, moments.LANES):
            lanes = [
                list(map(add, lane, places[base + at])) for at, lane in enumerate(lanes)
            ]
        a, b, c, d, e, f, g, h = lanes
        left = map(add, map(add, a, b), map(add, c, d))
        right = map(add, map(add, e, f), map(add, g, h))
        total = list(map(add, left, right))
        rest = places[whole:]
    for place in rest:
        total = list(map(add, total, place))
    return list(map(add, repeat(0.0), total))
