"""The statistics of many groups of one column at once, equal to one group's to the bit.

Where all groups have the same number of records and none lacks a value, the r-th
values of all groups are added up as one list: the same additions in the same order,
done by loops that Python does not interpret.
"""

import math
from collections.abc import Sequence
from itertools import chain, repeat
from operator import add, itemgetter, mul, sub, truediv
from typing import Any

from tasks.core import moments
from tasks.core.columns import STATISTICS, Columns, Metric, Values, describe_column
from tasks.core.number_column import Number

Column = list[Number | None]
_MOST_AT_ONCE = 128
"""Records of a group up to which they are added up in one pass (NumPy's block)."""


def describe_groups(
    columns: Columns, values: Sequence[Values], sizes: Sequence[int]
) -> list[dict[str, Number]]:
    """Return `mean/… max/… min/… median/… std/…` of each group, stat-major.

    `values[c]` are the values of the c-th column, one group after another. A column
    without a value in a group is left out there; `std` of one value among several
    rows too.
    """
    found = [
        _described(metric, columns, column, sizes)
        for metric, column in zip(columns.metrics, values, strict=True)
    ]
    keys = [f"{name}/{m.name}" for name in STATISTICS for m in columns.metrics]
    by_statistic = zip(*found, strict=True)
    rows = zip(*chain.from_iterable(by_statistic), strict=True)
    if not keys:
        return [{} for _ in sizes]
    return [_named(keys, row) for row in rows]


def _named(keys: Sequence[str], row: Sequence[Number | None]) -> dict[str, Number]:
    named = zip(keys, row, strict=True)
    if None in row:
        return {key: value for key, value in named if value is not None}
    return dict(named)  # type: ignore[arg-type]


def _described(
    metric: Metric, columns: Columns, values: Values, sizes: Sequence[int]
) -> Sequence[Column]:
    """Return a column's statistics in order, each a list over the groups."""
    count = sizes[0]
    is_even = count <= _MOST_AT_ONCE and sizes.count(count) == len(sizes)
    if is_even and (metric.full or None not in values):
        found = _at_once(values, count, is_whole=metric.whole, is_int=columns.every_int)
        if found is not None:
            return found
    described = []
    stop = 0
    for size in sizes:
        start, stop = stop, stop + size
        described.append(
            describe_column(
                values[start:stop], whole=metric.whole, every_int=columns.every_int
            )
        )
    return [[group.get(name) for group in described] for name in STATISTICS]


def _at_once(
    values: Values, count: int, *, is_whole: bool, is_int: bool
) -> Sequence[Column] | None:
    """Describe groups of `count` values each; None where some result is no number.

    `is_whole` says that the values are whole numbers, and not floats as otherwise;
    `is_int`, that the largest and the smallest are written as such.
    """
    numbers: Sequence[Any] = list(map(float, values)) if is_whole else values  # type: ignore[arg-type]
    places = [numbers[place::count] for place in range(count)]
    means = list(map(truediv, _sums(places), repeat(count)))
    deviations: list[float]
    if count == 1:
        deviations = [0.0] * len(means)
    else:
        squares = []
        for place in places:
            distances = list(map(sub, means, place))
            squares.append(list(map(mul, distances, distances)))
        variances = map(truediv, _sums(squares), repeat(count - 1))
        deviations = list(map(math.sqrt, variances))
    if any(map(math.isnan, chain(means, deviations))):
        return None
    ranked: Sequence[Any] = values if is_int else numbers
    starts = range(0, len(ranked), count)
    groups = [sorted(ranked[start : start + count]) for start in starts]
    return (
        [*means],
        [group[-1] for group in groups],
        [group[0] or moments.least(group) for group in groups],
        [*_medians(groups, count)],
        [*deviations],
    )


def _medians(groups: Sequence[Sequence[float]], count: int) -> list[float]:
    """Return the median of each ascending group (see `moments.median`)."""
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
