"""Correlation of two columns: linear and by ranks, over all and within groups.

Values are scaled by powers of two, so that no square leaves the range of a float. What
is constant correlates with nothing: None.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import mul

from reward_profiling.numerics.uncertainty import MIN_VALUES, mean_of

Groups = Sequence[tuple[Sequence[float], Sequence[float]]]
"""`groups[g]` is (x, y) of the pairs of group g; x and y are of one length."""

_SHORT = 16


def pearson(
    x: Sequence[float], y: Sequence[float], tolerance: float = 0.0
) -> float | None:
    """Return the linear correlation; None where a side is constant, or below two.

    `y` is constant when it spans no more than `tolerance`.
    """
    if len(x) < MIN_VALUES or max(x) == min(x) or max(y) - min(y) <= tolerance:
        return None
    return _correlation(_centred(x), _centred(y))


def spearman(
    x: Sequence[float], y: Sequence[float], tolerance: float = 0.0
) -> float | None:
    """Return the rank correlation, ties at their mean rank; None as for `pearson`."""
    if len(x) < MIN_VALUES or max(x) == min(x) or max(y) - min(y) <= tolerance:
        return None
    return _correlation(_centred(ranks(x)), _centred(ranks(alike(y, tolerance))))


def pearson_within(groups: Groups, tolerance: float = 0.0) -> float | None:
    """Return the linear correlation once each group's own means are taken off.

    None where no group of two pairs or more varies, in `y` by more than `tolerance`.
    """
    told = [(x, y) for x, y in groups if len(x) >= MIN_VALUES]
    if not any(max(y) - min(y) > tolerance for _, y in told):
        return None
    if not any(max(x) > min(x) for x, _ in told):
        return None
    return _correlation(
        list(chain.from_iterable(_centred(x) for x, _ in told)),
        list(chain.from_iterable(_centred(y) for _, y in told)),
    )


def spearman_within(groups: Groups, tolerance: float = 0.0) -> float | None:
    """Return the same of the ranks within each group."""
    return pearson_within([(ranks(x), ranks(alike(y, tolerance))) for x, y in groups])


def alike(values: Sequence[float], tolerance: float) -> list[float]:
    """Return the values, those within `tolerance` of the smallest of a kind as it.

    A difference that is rounding must not make a rank.
    """
    kinds: dict[float, float] = {}
    first = -math.inf
    for value in sorted(set(values)):
        if value - first > tolerance:
            first = value
        kinds[value] = first
    return [kinds[value] for value in values]


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from 1, equal values at their mean rank."""
    if len(values) <= _SHORT:  # a search costs less than a table
        ordered = sorted(values)
        return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]
    counts = Counter(values)
    rank: dict[float, float] = {}
    below = 0
    for value in sorted(counts):
        rank[value] = below + (counts[value] + 1) / 2
        below += counts[value]
    return [rank[value] for value in values]


def _centred(values: Sequence[float]) -> list[float]:
    mean = mean_of(values)
    return [value - mean for value in values]


def _correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the correlation of centred values; None where a side does not vary."""
    x, y = _unit_scaled(x), _unit_scaled(y)
    xx, yy = math.fsum(map(mul, x, x)), math.fsum(map(mul, y, y))
    if not (xx and yy and math.isfinite(xx) and math.isfinite(yy)):
        return None
    found = math.fsum(map(mul, x, y)) / math.sqrt(xx) / math.sqrt(yy)
    return max(-1.0, min(1.0, found))


def _unit_scaled(values: Sequence[float]) -> Sequence[float]:
    """Divide by a power of two, so that no square leaves the range of a float."""
    largest = max(map(abs, values))
    if largest == 0 or not math.isfinite(largest):
        return values
    scale = math.ldexp(1.0, max(-1000, min(1000, math.frexp(largest)[1])))
    return [value / scale for value in values]
