"""Sums and moments that agree with Gym's to the last bit.

Gym computes with NumPy and pandas; floating-point addition is not associative, so
equal bytes need the same order of additions. Source: `gym-contract.md` §4.4, §4.7.
A missing value is `None`, never NaN.
"""

import math
from collections.abc import Sequence

_UNROLL = 8
_BLOCK = 128


def pairwise_sum(values: Sequence[float]) -> float:
    """Add floats in NumPy's pairwise order.

    Fewer than 8 values are added left to right; up to 128 in eight interleaved
    accumulators; more are split at half, rounded down to a multiple of 8.
    The sum of nothing is 0.0.
    """
    return _pairwise(values, 0, len(values))


def _pairwise(values: Sequence[float], start: int, count: int) -> float:
    if count < _UNROLL:
        # NumPy starts from the first element; 0.0 + x is x for every x but -0.0.
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


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the present values; `None` when there are none.

    A missing value adds 0.0 in its place, which decides the order of additions.
    """
    count = sum(value is not None for value in values)
    if not count:
        return None
    return pairwise_sum([0.0 if value is None else value for value in values]) / count


def std(values: Sequence[float | None], average: float) -> float | None:
    """Return the sample standard deviation (ddof 1) about `average`.

    One value among several rows has no deviation (`None`); one row alone has 0.0,
    as Gym writes it. Unknown is not zero, and the insights say so.
    """
    count = sum(value is not None for value in values)
    if count < 2:  # noqa: PLR2004 - a deviation takes two values
        return 0.0 if len(values) == 1 and count == 1 else None
    squares = [
        0.0 if value is None else (average - value) * (average - value)
        for value in values
    ]
    return math.sqrt(pairwise_sum(squares) / (count - 1))


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values: the middle, or the middle two's mean."""
    count = len(ordered)
    middle = count // 2
    if count % 2:
        return float(ordered[middle])
    return (ordered[middle - 1] + ordered[middle]) / 2.0


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the linearly interpolated quantile of ascending values (n >= 1)."""
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    fraction = position - below
    lower = ordered[below]
    upper = ordered[min(below + 1, len(ordered) - 1)]
    step = upper - lower
    # NumPy's lerp counts from the nearer end.
    if fraction < 0.5:  # noqa: PLR2004 - halfway
        return float(lower + step * fraction)
    return float(upper - step * (1.0 - fraction))
