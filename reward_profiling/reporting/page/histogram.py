"""Bars of a histogram on any scale of rewards."""

import math
from collections.abc import Sequence
from itertools import pairwise

_MOST_BARS = 40
_WANTED_BINS = 24
_NARROWEST = 40
"""A bar of its own for each value needs gaps of at least range / this."""
_NEAR_STEP = 1e-6
_MOST_ON_STEPS = 0.75
_SAME = 12
"""Significant digits by which values are told apart."""


def bars(values: Sequence[float], steps: int = 0) -> list[tuple[float, float]]:
    """Return the bars that cover finite values, as (left, right), ascending.

    With 8 repeats of rewards 0 and 1, means are eighths, which bins of any other width
    would show as a comb: where most values lie on one of `steps` equal steps from the
    smallest to the largest, each step has a bar. So has each of a few distinct
    values. Otherwise the bins are of one round width. Empty for no values, and where
    their range is beyond floats.
    """
    distinct = sorted({float(f"{value:.{_SAME}g}") for value in values})
    if not distinct or not math.isfinite(distinct[-1] - distinct[0]):
        return []
    if len(distinct) == 1:
        half = max(abs(distinct[0]) * 0.025, 0.025)
        return [(distinct[0] - half, distinct[0] + half)]
    extent = distinct[-1] - distinct[0]
    if 1 < steps <= _MOST_BARS and _lie_on_steps(values, steps):
        return _around_steps(distinct[0], extent / steps, steps)
    gap = min(after - before for before, after in pairwise(distinct))
    if len(distinct) <= _MOST_BARS and gap >= extent / _NARROWEST:
        return [(value - 0.4 * gap, value + 0.4 * gap) for value in distinct]
    return _bins(distinct[0], distinct[-1])


def _lie_on_steps(values: Sequence[float], steps: int) -> bool:
    low, high = min(values), max(values)
    places = ((value - low) / (high - low) * steps for value in values)
    on_step = sum(abs(place - round(place)) < _NEAR_STEP for place in places)
    return on_step >= _MOST_ON_STEPS * len(values)


def _around_steps(low: float, width: float, steps: int) -> list[tuple[float, float]]:
    centres = [low + step * width for step in range(steps + 1)]
    return [(centre - width / 2, centre + width / 2) for centre in centres]


def _bins(low: float, high: float) -> list[tuple[float, float]]:
    width = _round_width((high - low) / _WANTED_BINS)
    first = math.floor(low / width)
    last = max(math.ceil(high / width), first + 1)
    return [(k * width, (k + 1) * width) for k in range(first, last)]


def _round_width(width: float) -> float:
    """Return the next of 1, 2, 2.5 and 5 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(
        (step * power for step in (1.0, 2.0, 2.5, 5.0) if step * power >= width),
        10.0 * power,
    )


def bar_of(value: float, edges: Sequence[tuple[float, float]]) -> int:
    """Return the position of the bar that holds a value; edges belong to the right."""
    low, high = 0, len(edges) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if edges[middle][0] <= value:
            low = middle
        else:
            high = middle - 1
    return low
