"""Sums and moments that agree with Gym's to the last bit.

Gym computes with NumPy and pandas; floating-point addition is not associative, so
equal bytes need the same order of additions. Source: `gym-contract.md` §4.4, §4.7.
A missing value is `None`, never NaN.
"""

import math
from collections.abc import Sequence

_UNROLL = 8
_BLOCK = 128
_BUFFER = 8192
_INT64_LIMIT = 2**63


def pairwise_sum(values: Sequence[float]) -> float:
    """Add floats in NumPy's pairwise order.

    Fewer than 8 values are added left to right; up to 128 in eight interleaved
    accumulators; more are split at half, rounded down to a multiple of 8.
    The sum of nothing is 0.0, and so is the sum of negative zeros: every reduction
    of NumPy's adds its pairwise sum to 0.0.
    """
    return 0.0 + _pairwise(values, 0, len(values))


def _pairwise(values: Sequence[float], start: int, count: int) -> float:
    if count < _UNROLL:
        return _left_to_right(values, start, start + count)
    if count <= _BLOCK:
        return _eight_lanes(values, start, count)
    half = count // 2
    half -= half % _UNROLL
    return _pairwise(values, start, half) + _pairwise(
        values, start + half, count - half
    )


def _left_to_right(values: Sequence[float], start: int, stop: int) -> float:
    total = 0.0
    for index in range(start, stop):
        total += values[index]
    return total


def _eight_lanes(values: Sequence[float], start: int, count: int) -> float:
    whole = start + count - count % _UNROLL
    lanes = [float(value) for value in values[start : start + _UNROLL]]
    for base in range(start + _UNROLL, whole, _UNROLL):
        for lane in range(_UNROLL):
            lanes[lane] += values[base + lane]
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for index in range(whole, start + count):
        total += values[index]
    return total


def buffered_sum(values: Sequence[float]) -> float:
    """Add whole numbers as floats in NumPy's order: pairwise per buffer of 8,192."""
    total = 0.0
    for start in range(0, len(values), _BUFFER):
        total += pairwise_sum(values[start : start + _BUFFER])
    return total


def mean(values: Sequence[float | None], *, whole: bool = False) -> float | None:
    """Return the mean of the present values; `None` when there are none.

    A missing value adds 0.0 in its place, which decides the order of additions.
    `whole` says that the column holds whole numbers in every record of the run.
    """
    count = sum(value is not None for value in values)
    if not count:
        return None
    add = buffered_sum if whole else pairwise_sum
    return add([0.0 if value is None else value for value in values]) / count


def std(values: Sequence[float | None]) -> float | None:
    """Return the sample standard deviation (ddof 1) about the mean.

    One value among several rows has no deviation (`None`); one row alone has 0.0,
    as Gym writes it. Unknown is not zero, and the insights say so.
    """
    count = sum(value is not None for value in values)
    if count < 2:  # noqa: PLR2004 - a deviation takes two values
        return 0.0 if len(values) == 1 and count == 1 else None
    average = mean(values) or 0.0
    squares = [
        0.0 if value is None else (average - value) * (average - value)
        for value in values
    ]
    return math.sqrt(pairwise_sum(squares) / (count - 1))


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values: the middle, or the middle two's mean.

    It is never -0.0: a mean is a sum, and a sum starts at 0.0.
    """
    count = len(ordered)
    middle = count // 2
    if count % 2:
        return 0.0 + ordered[middle]
    # Floats first: whole numbers beyond 2^53 are rounded before they are added.
    return (0.0 + float(ordered[middle - 1]) + float(ordered[middle])) / 2.0


def least(values: Sequence[int | float]) -> int | float:
    """Return the smallest value; of zeros that differ in sign, the last."""
    found = values[0]
    for value in values:
        found = min(value, found)
    return found


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the linearly interpolated quantile of ascending values (n >= 1).

    Whole numbers must come from one 64-bit column: their distance is taken in 64 bits
    and wraps around beyond, as NumPy's does.
    """
    if len(ordered) == 1:
        return float(ordered[0])
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    fraction = position - below
    lower = ordered[below]
    upper = ordered[min(below + 1, len(ordered) - 1)]
    step = _distance(lower, upper)
    # NumPy's lerp counts from the nearer end.
    if fraction < 0.5:  # noqa: PLR2004 - halfway
        return lower + step * fraction
    return upper - step * (1.0 - fraction)


def _distance(lower: float, upper: float) -> float:
    step = upper - lower
    if isinstance(step, int) and lower < 0 and step >= _INT64_LIMIT:
        step -= 2 * _INT64_LIMIT
    return float(step)
