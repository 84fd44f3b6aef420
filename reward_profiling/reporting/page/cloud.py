"""Many points as few: where they stand too thick to be drawn one by one."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MOST_POINTS = 1200
"""Points that are drawn one by one."""

_COLUMNS, _ROWS = 56, 28
_LONG_TAIL = 8.0
"""From how many times the median the largest value calls for a logarithmic axis."""


class Point(NamedTuple):
    """A place in a plot and how many stand there."""

    x: float
    y: float
    kind: int
    """0 or 1; kinds are never put together."""
    amount: int = 1


def has_long_tail(xs: Sequence[float]) -> bool:
    """Say whether values, all positive, need a logarithmic axis."""
    if not xs or min(xs) <= 0:
        return False
    return max(xs) > _LONG_TAIL * sorted(xs)[len(xs) // 2]


def thinned(points: Sequence[Point], *, is_log: bool) -> list[Point]:
    """Return the points, or the filled cells of a grid when there are too many.

    A cell stands at the middle of its column; of its row, too, unless there are so
    few different heights that each is a row. The result does not depend on the order
    of the points.
    """
    if len(points) <= MOST_POINTS:
        return sorted(points)
    across = [math.log(point.x) if is_log else point.x for point in points]
    columns = _middles(across, _COLUMNS)
    heights = [point.y for point in points]
    rows = heights if len(set(heights)) <= _ROWS else _middles(heights, _ROWS)
    cells = Counter(
        (math.exp(x) if is_log else x, y, point.kind)
        for x, y, point in zip(columns, rows, points, strict=True)
    )
    return sorted(Point(x, y, kind, amount) for (x, y, kind), amount in cells.items())


def _middles(values: Sequence[float], number: int) -> list[float]:
    """Return for each value the middle of its part, of equal parts of their range."""
    low = min(values)
    width = (max(values) - low) / number
    if not width:
        return list(values)
    places = (min(int((value - low) / width), number - 1) for value in values)
    return [low + (place + 0.5) * width for place in places]
