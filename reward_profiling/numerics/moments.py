"""Sums and moments that agree with Gym's to the last bit.

Gym computes with NumPy and pandas; floating-point addition is not associative, so
equal bytes need the same order of additions. Source: `gym-contract.md` §4.4, §4.7.
A missing value is `None`, never NaN.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from operator import add

LANES = 8
"""Sums that NumPy runs beside each other."""
_BLOCK = 128
_FEW = 48
BUFFER = 8192
"""Whole numbers that NumPy turns into floats at a time."""
_INT64_LIMIT = 2**63
_EXACT = 2**53
"""Whole numbers up to here are floats, too."""

# Left to right, rounded after every addition, as NumPy does. From Python 3.12 on `sum`
# is more precise, which would give other digits than Gym's.
_add_up: Callable[[Iterable[float]], float] = (
    sum if sys.version_info < (3, 12) else partial(reduce, add)
)


def pairwise_sum(values: Sequence[float]) -> float:
    """Add floats in NumPy's pairwise order.

    Fewer than 8 values are added left to right; up to 128 in eight interleaved
    accumulators; more are split at half, rounded down to a multiple of 8.
    The sum of nothing is 0.0, and so is the sum of negative zeros: every reduction
    of NumPy's adds its pairwise sum to 0.0.
    """
    return 0.0 + _pairwise(values) if values else 0.0


def _pairwise(values: Sequence[float]) -> float:
    count = len(values)
    if count < LANES:
        return _add_up(values)
    if count < _FEW:
        return _eight_lanes(values)
    sums = _block_sums(values)
    if not _is_balanced(count):
        return _joined(count, iter(sums))
    # With equal depths, adding neighbours level by level is the recursion's order.
    while len(sums) > 1:
        sums = list(map(add, sums[::2], sums[1::2]))
    return sums[0]


def _eight_lanes(values: Sequence[float]) -> float:
    whole = len(values) - len(values) % LANES
    lanes: Iterable[float] = values[:LANES]
    for base in range(LANES, whole, LANES):
        lanes = map(add, lanes, values[base : base + LANES])
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for value in values[whole:]:
        total += value
    return total


def _block_sums(values: Sequence[float]) -> list[float]:
    """Return the sum of each block that is added up at once."""
    blocks = _blocks(len(values))
    sums: list[list[float]] = []
    for first in range(LANES):
        lane = values[first::LANES]
        sums.append(list(map(_add_up, map(lane.__getitem__, blocks))))
    a, b, c, d, e, f, g, h = sums
    left = map(add, map(add, a, b), map(add, c, d))
    right = map(add, map(add, e, f), map(add, g, h))
    found = list(map(add, left, right))
    for value in values[len(values) - len(values) % LANES :]:
        found[-1] += value
    return found


@lru_cache(maxsize=8)
def _blocks(count: int) -> list[slice]:
    """Return which part of a lane belongs to each block of `count` values."""
    return [
        slice(start // LANES, (start + size) // LANES)
        for start, size in _split(0, count)
    ]


def _split(start: int, count: int) -> list[tuple[int, int]]:
    if count <= _BLOCK:
        return [(start, count)]
    half = _half(count)
    return _split(start, half) + _split(start + half, count - half)


@lru_cache(maxsize=8)
def _is_balanced(count: int) -> bool:
    """Say whether all blocks of `count` values come of as many splits."""
    return len(set(_depths(count))) == 1


def _depths(count: int) -> list[int]:
    if count <= _BLOCK:
        return [0]
    half = _half(count)
    return [1 + depth for depth in _depths(half) + _depths(count - half)]


def _half(count: int) -> int:
    # NumPy keeps the left half a multiple of its eight lanes.
    half = count // 2
    return half - half % LANES


def _joined(count: int, sums: Iterator[float]) -> float:
    """Add the sums of blocks up, as they were split."""
    if count <= _BLOCK:
        return next(sums)
    half = _half(count)
    return _joined(half, sums) + _joined(count - half, sums)


def buffered_sum(values: Sequence[float]) -> float:
    """Add whole numbers as floats in NumPy's order: pairwise per buffer of 8,192.

    In any order, where no sum on the way can need rounding.
    """
    if values:
        highest, lowest = max(values), min(values)
        if len(values) * max(highest, -lowest) <= _EXACT:
            return float(sum(values))
    total = 0.0
    for start in range(0, len(values), BUFFER):
        total += pairwise_sum(list(map(float, values[start : start + BUFFER])))
    return total


def mean(values: Sequence[float | None], *, whole: bool = False) -> float | None:
    """Return the mean of the present values; `None` when there are none.

    A missing value adds 0.0 in its place, which decides the order of additions.
    `whole` says that the column holds whole numbers in every record of the run.
    """
    count = len(values) - values.count(None)
    if not count:
        return None
    if count < len(values):
        filled = [0.0 if value is None else value for value in values]
        return _sum(filled, whole=whole) / count
    return full_mean(values, whole=whole)  # type: ignore[arg-type]


def full_mean(values: Sequence[float], *, whole: bool = False) -> float:
    """Return the mean of values of which none is missing (n >= 1)."""
    return _sum(values, whole=whole) / len(values)


def _sum(values: Sequence[float], *, whole: bool) -> float:
    return buffered_sum(values) if whole else pairwise_sum(values)


def std(values: Sequence[float | None], average: float | None = None) -> float | None:
    """Return the sample standard deviation (ddof 1) about the mean.

    One value among several rows has no deviation (`None`); one row alone has 0.0,
    as Gym writes it. Unknown is not zero, and the insights say so. `average` is the
    mean added up in pairs, where it is known already.
    """
    count = len(values) - values.count(None)
    if count < 2:  # noqa: PLR2004 - a deviation takes two values
        return 0.0 if len(values) == 1 and count == 1 else None
    if count == len(values):
        return full_std(values, average)  # type: ignore[arg-type]
    if average is None:
        average = mean(values) or 0.0
    squares = [
        0.0 if value is None else (average - value) * (average - value)
        for value in values
    ]
    return math.sqrt(pairwise_sum(squares) / (count - 1))


def full_std(values: Sequence[float], average: float | None = None) -> float:
    """Return the deviation of values of which none is missing (n >= 1)."""
    if len(values) == 1:
        return 0.0
    if average is None:
        average = full_mean(values)
    squares = [(d := average - value) * d for value in values]
    return math.sqrt(pairwise_sum(squares) / (len(values) - 1))


def mean_and_std(
    values: Sequence[float | None], *, whole: bool, full: bool = False
) -> tuple[float | None, float | None]:
    """Return the mean and the deviation about it (see `mean` and `std`).

    `full` says that no value is missing, which takes a while to find out.
    """
    # NumPy adds integers in buffers for the mean, but in one piece for the deviation.
    is_same = not whole or len(values) <= BUFFER
    if not full and None in values:
        average = mean(values, whole=whole)
        return average, std(values, average if is_same else None)
    if not values:
        return None, None
    average = full_mean(values, whole=whole)  # type: ignore[arg-type]
    return average, full_std(values, average if is_same else None)  # type: ignore[arg-type]


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values: the middle, or the middle two's mean.

    It is never -0.0: a mean is a sum, and a sum starts at 0.0.
    """
    count = len(ordered)
    middle = count // 2
    if count % 2:
        return 0.0 + ordered[middle]
    # Convert first: NumPy rounds integers beyond 2^53 before it adds them.
    return (0.0 + float(ordered[middle - 1]) + float(ordered[middle])) / 2.0


def doubled(middle: float) -> float:
    """Return half of a value's sum with itself: infinite where that is too large."""
    return (middle + middle) / 2.0


def least(values: Sequence[int | float]) -> int | float:
    """Return the smallest of ascending values; of zeros of both signs, the last."""
    found = values[0]
    if found != 0:
        return found
    for value in values:
        if value != 0:
            break
        found = value
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
    # NumPy subtracts in 64 bits, where a wide distance wraps around.
    if isinstance(step, int) and lower < 0 and step >= _INT64_LIMIT:
        step -= 2 * _INT64_LIMIT
    return float(step)
