"""The difference of two runs over the tasks that both scored.

Pairing tasks cancels their difficulty out (`statistics.md` D2; Miller 2024, arXiv
2411.00640).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from reward_profiling.choosing.comparing.judgement import judge
from reward_profiling.choosing.comparing.task_pairs import Pair, Side, mcnemar_of
from reward_profiling.choosing.comparison import CompareOptions, Difference
from reward_profiling.numerics.correlation import pearson
from reward_profiling.numerics.student_t import Z_975, t_975
from reward_profiling.numerics.uncertainty import (
    MIN_TASKS,
    Interval,
    mean_of,
    rerun_error,
    standard_error,
    zero_upper_bound,
)

Z_80 = 0.8416212335729143
"""The 80 % quantile of the normal distribution: a power of 80 %."""


def difference_of(
    agent: str | None, pairs: Sequence[Pair], options: CompareOptions
) -> Difference:
    """Return the difference over at least one paired task, in units of the measure.

    `agent` is whose tasks they are; None for all.
    """
    before = [pair.baseline.value for pair in pairs]
    after = [pair.candidate.value for pair in pairs]
    differences = [pair.difference for pair in pairs]
    mean, error = mean_of(differences), standard_error(differences)
    bounds = _bounds(pairs, mean, error)
    margin = options.max_regression
    return Difference(
        agent=agent,
        num_tasks=len(pairs),
        baseline_rollouts=sum(pair.baseline.n for pair in pairs),
        candidate_rollouts=sum(pair.candidate.n for pair in pairs),
        baseline_mean=mean_of(before),
        candidate_mean=mean_of(after),
        difference=mean,
        standard_error=error,
        interval=bounds.interval,
        caution=bounds.caution,
        correlation=pearson(before, after),
        mcnemar=mcnemar_of(pairs),
        detectable=(Z_975 + Z_80) * error if error else None,
        tasks_needed=(
            tasks_needed(error * error * len(pairs), margin)
            if error and margin
            else None
        ),
        judgement=None if margin is None else judge(bounds.interval, margin),
    )


def tasks_needed(variance: float, difference: float) -> int:
    """Return the tasks, at least 2, that find a difference at 5 % with 80 % power.

    `variance` is that of a task's difference: omega² + sigma_A²/K_A + sigma_B²/K_B,
    with the variance between tasks and those within them over their repeats.
    """
    found = (Z_975 + Z_80) ** 2 * variance / (difference * difference)
    return max(2, math.ceil(found - 1e-9))


class _Reach(NamedTuple):
    """An interval of a difference, and what it is made of."""

    interval: Interval | None
    caution: str | None


def _bounds(pairs: Sequence[Pair], mean: float, error: float | None) -> _Reach:
    n = len(pairs)
    if n < MIN_TASKS:
        tasks = "one task is" if n == 1 else f"{n} tasks are"
        return _Reach(None, f"{tasks} too few for an interval")
    if error:
        return _Reach(_around(mean, t_975(n - 1) * error), None)
    noise = _noise(pairs)
    if noise:
        return _Reach(
            _around(mean, Z_975 * noise),
            "every task changed by the same amount: the interval covers repeats only",
        )
    # Nothing varies at all: what n tasks without a change leave possible.
    reach = zero_upper_bound(n) * _span(pairs)
    return _Reach(
        _around(mean, reach),
        f"all repeats are equal: the interval is what {n} tasks with the same change"
        " leave possible",
    )


def _around(mean: float, reach: float) -> Interval:
    return Interval(low=mean - reach, high=mean + reach)


def _noise(pairs: Sequence[Pair]) -> float | None:
    """Return the error of the difference, were the same tasks run again."""
    errors = []
    for side in ("baseline", "candidate"):
        sides: list[Side] = [getattr(pair, side) for pair in pairs]
        told = [(s.variance, s.n) for s in sides if s.variance is not None]
        error, _ = rerun_error([v for v, _ in told], [n for _, n in told])
        errors.append(error or 0.0)
    return math.hypot(*errors) or None


def _span(pairs: Sequence[Pair]) -> float:
    """Return how far a task could move: what was seen, and at least a whole pass."""
    values = [side.value for pair in pairs for side in (pair.baseline, pair.candidate)]
    return max(1.0, max(values) - min(values))
