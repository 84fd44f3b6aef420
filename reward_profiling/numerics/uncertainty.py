"""How sure a mean or a rate is; every case without an answer is None, with a reason.

Formulas: `statistics.md` D1, D2 and D3; Miller 2024, arXiv 2411.00640. Sums are exact
(`math.fsum`), so that the order of rollouts and of tasks changes no bit.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from reward_profiling.numerics.student_t import Z_975, t_975

ALPHA = 0.05
MIN_TASKS = 5
"""Tasks below which no interval of a mean is given: the simulation in
`benchmarks/coverage.py` shows what it would be worth."""
MIN_VALUES = 2
"""Values below which there is no spread."""
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of an estimate, or of what a number can be."""

    low: float
    """Lower bound."""

    high: float
    """Upper bound."""


_TOO_LARGE = (OverflowError, ValueError)
"""What `fsum` raises for sums beyond every float, the latter for such of both signs."""


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of at least one value, rounded once per step."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum does not fit in a float, the mean does
        return _large_mean([(value, 1) for value in values], len(values))


class _Squares(NamedTuple):
    """A sum of squared deviations, as total · scale²: squares may not fit a float."""

    total: float
    scale: float


def _squares(values: Sequence[float], mean: float) -> _Squares:
    # Two passes: the textbook formula with a sum of squares cancels catastrophically.
    deviations = [value - mean for value in values]
    largest = max(map(abs, deviations))
    if largest == 0 or not math.isfinite(largest):
        return _Squares(largest, 1.0)
    # A power of two, so that scaling rounds nothing; inside the range of 1/scale, too.
    scale = math.ldexp(1.0, max(-1000, min(1000, math.frexp(largest)[1])))
    scaled = [value / scale for value in deviations]
    total = math.fsum(map(mul, scaled, scaled))
    return _Squares(total, scale)


def variance(values: Sequence[float], mean: float | None = None) -> float | None:
    """Return the sample variance (ddof 1), by two passes; None below two values.

    It is infinite where squares do not fit in a float.
    """
    if len(values) < MIN_VALUES:
        return None
    squares = _squares(values, mean_of(values) if mean is None else mean)
    return squares.total / (len(values) - 1) * squares.scale * squares.scale


def std(values: Sequence[float], mean: float | None = None) -> float | None:
    """Return the sample standard deviation (ddof 1); None below two values."""
    if len(values) < MIN_VALUES:
        return None
    squares = _squares(values, mean_of(values) if mean is None else mean)
    return math.sqrt(squares.total / (len(values) - 1)) * squares.scale


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean, std / sqrt(n); None below two values.

    Over task means it is the error clustered by task with the C/(C - 1) correction,
    when every task has as many rollouts.
    """
    spread = std(values)
    return None if spread is None else spread / math.sqrt(len(values))


def _large_mean(pairs: Collection[tuple[float, int]], count: int) -> float:
    """Return the mean of values, (value, times), whose sum does not fit in a float.

    They are made smaller by a power of two, which rounds nothing; and rounding cannot
    take their mean beyond the largest of them, so neither may the result.
    """
    scale = 2.0 ** -count.bit_length()
    mean = math.fsum(value * scale * times for value, times in pairs) / count / scale
    values = [value for value, _ in pairs]
    return min(max(values), max(min(values), mean))


def counted_mean(pairs: Collection[tuple[float, int]]) -> float:
    """Return the mean of values that stand for several tasks each: (value, tasks)."""
    count = sum(tasks for _, tasks in pairs)
    try:
        found = math.fsum(value * tasks for value, tasks in pairs) / count
    except _TOO_LARGE:
        found = math.inf
    if math.isfinite(found):
        return found
    return _large_mean(pairs, count)


def counted_error(pairs: Collection[tuple[float, int]]) -> float | None:
    """Return the standard error of such a mean; None below two tasks.

    The values are rates, which need no care for squares that do not fit.
    """
    n = sum(tasks for _, tasks in pairs)
    if n < MIN_VALUES:
        return None
    mean = counted_mean(pairs)
    squares = math.fsum(tasks * (value - mean) ** 2 for value, tasks in pairs)
    return math.sqrt(squares / (n - 1) / n)


def clustered_error(sums: Sequence[float], counts: Sequence[int]) -> float | None:
    """Return the standard error of a mean over rollouts, clustered by task.

    `sums[i]` and `counts[i]` are the rewards of task i, added and counted. The squares
    are multiplied by C/(C - 1), as Inspect and NeMo Evaluator do and the paper does
    not. None below two tasks with a reward, and where sums do not fit in a float.
    """
    clusters = [
        (total, count) for total, count in zip(sums, counts, strict=True) if count
    ]
    if len(clusters) < MIN_VALUES:
        return None
    n = sum(count for _, count in clusters)
    try:
        mean = math.fsum(total for total, _ in clusters) / n
    except _TOO_LARGE:
        return None
    deviations = [total - count * mean for total, count in clusters]
    if not all(map(math.isfinite, deviations)):
        return None
    squares = _squares(deviations, 0.0)
    correction = len(clusters) / (len(clusters) - 1)
    return math.sqrt(squares.total * correction) * squares.scale / n


def rerun_error(
    variances: Sequence[float], counts: Sequence[int]
) -> tuple[float | None, int]:
    """Return how far the mean over these fixed tasks would move when run again.

    `variances[i]` is the sample variance within task i and `counts[i]` >= 2 its
    rollouts. For 0/1 rewards this is sqrt(sum of p(1 - p)/(n - 1)) / N. Returns
    (error, N); the error is None without tasks.
    """
    if not variances:
        return None, 0
    total = math.fsum(v / n for v, n in zip(variances, counts, strict=True))
    return math.sqrt(total) / len(variances), len(variances)


def mean_interval(means: Sequence[float], span: Interval) -> Interval | None:
    """Return the 95 % interval of a mean over tasks; None where none is honest.

    `span` is what a task's mean can be. The interval is Student's t with two tasks
    added, one at each end of the span: few tasks that look alike, or a few that stand
    out, otherwise make it far too narrow (after Agresti and Coull 1998, who add to a
    rate; `benchmarks/coverage.py` shows how often it holds). None below `MIN_TASKS`,
    or where the span is a point.
    """
    if len(means) < MIN_TASKS or span.low == span.high:
        return None
    added = [*means, span.low, span.high]
    centre, error = mean_of(added), standard_error(added)
    reach = t_975(len(added) - 1) * (error or 0.0)
    return Interval(max(span.low, centre - reach), min(span.high, centre + reach))


def span_of(lowest: float, highest: float, threshold: float) -> Interval:
    """Return what rewards can be: what was seen, what passes, and else zero."""
    low, high = min(lowest, threshold), max(highest, threshold)
    return (
        Interval(low, high) if low < high else Interval(min(0.0, low), max(0.0, high))
    )


def caution(error: float | None, count: int) -> str | None:
    """Say why a mean over `count` tasks has no interval, or what it rests on."""
    if count == 0:
        return "no task has a reward"
    if count < MIN_TASKS:
        tasks = "one task" if count == 1 else f"{count} tasks"
        return f"{tasks}: too few for an interval of the mean"
    if not error:
        return (
            f"all {count} tasks have the same mean, which does not make the overall"
            " mean certain"
        )
    return None


@lru_cache(maxsize=65_536)
def wilson(passed: int, count: int) -> Interval:
    """Return Wilson's 95 % interval of a rate; `count` >= 1."""
    # Cached: tasks have few repeats, so the same pairs come up again and again.
    rate, z2 = passed / count, Z_975 * Z_975
    centre = (rate + z2 / (2 * count)) / (1 + z2 / count)
    spread = rate * (1 - rate) / count + z2 / (4 * count * count)
    half = Z_975 * math.sqrt(spread) / (1 + z2 / count)
    # Exact at the ends, where rounding would leave a trace beyond 0 or 1.
    low = 0.0 if passed == 0 else centre - half
    high = 1.0 if passed == count else centre + half
    return Interval(low, high)


@lru_cache(maxsize=65_536)
def clopper_pearson(passed: int, count: int) -> Interval:
    """Return the exact 95 % interval of a rate, which covers at least that often."""
    low, high = 0.0, 1.0
    if passed:
        low = _root(lambda p: upper_tail(passed, count, p) - ALPHA / 2)
    if passed < count:
        high = _root(lambda p: ALPHA / 2 - (1 - upper_tail(passed + 1, count, p)))
    return Interval(low, high)


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function of 0..1 crosses zero."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):  # each halving gains one bit; floats have 53
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def upper_tail(passed: int, count: int, rate: float) -> float:
    """Return the chance of `passed` or more of `count`, each with chance `rate`."""
    return math.fsum(_binomial(k, count, rate) for k in range(passed, count + 1))


def _binomial(k: int, count: int, rate: float) -> float:
    if rate in {0.0, 1.0}:
        return float(k == (count if rate else 0))
    # By logarithms: factorials of some hundred rollouts overflow a float.
    logarithm = (
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        + k * math.log(rate) + (count - k) * math.log1p(-rate)
    )  # fmt: skip
    return math.exp(logarithm)


def zero_upper_bound(count: int) -> float:
    """Return the one-sided 95 % upper bound of a rate, if none of `count` passed.

    1 - 0.05^(1/n): after eight failures of eight it is 0.312.
    """
    return 1.0 - math.pow(ALPHA, 1.0 / count)
