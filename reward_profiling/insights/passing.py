"""Passing: of one rollout, of k tries at a task, and of the answer most give.

Estimators: `statistics.md` D1; pass@k is Chen et al. 2021 (arXiv 2107.03374), unbiased
and undefined for k > n, where 1 - (1 - c/n)^k would be too low.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from reward_profiling.insights.schema import Majority, PassAt
from reward_profiling.numerics.uncertainty import counted_error, counted_mean

PassCounts = Mapping[tuple[int, int], int]
"""How many tasks have n scored rollouts of which c pass, by (n, c)."""

_EVERY_K = 16


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that one of k tries passes, c of n having passed.

    Whole numbers until the last division, so that it is exactly rounded.

    Raises:
        ValueError: k is not in 1..n; with more tries than rollouts it is unknown.
    """
    _check(n, k)
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that all of k tries pass (pass^k).

    Raises:
        ValueError: k is not in 1..n.
    """
    _check(n, k)
    return math.comb(c, k) / math.comb(n, k)


def _check(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"{k} tries cannot be judged by {n} rollouts")


def ks(most: int) -> Iterator[int]:
    """Yield the k that a curve shows: all to 16, powers of two, and the most."""
    yield from range(1, min(most, _EVERY_K) + 1)
    power = 2 * _EVERY_K
    while power < most:
        yield power
        power *= 2
    if most > _EVERY_K:
        yield most


def pass_curve(counts: PassCounts) -> tuple[PassAt, ...]:
    """Return pass@k and pass^k by k, each over the tasks with n >= k.

    Empty where no task has a scored rollout.
    """
    most = max((n for n, _ in counts), default=0)
    return tuple(_point(counts, k) for k in ks(most))


def _point(counts: PassCounts, k: int) -> PassAt:
    able = {(n, c): tasks for (n, c), tasks in counts.items() if n >= k}
    one = [(pass_at_k(n, c, k), tasks) for (n, c), tasks in able.items()]
    every = [(pass_hat_k(n, c, k), tasks) for (n, c), tasks in able.items()]
    return PassAt(
        k=k,
        pass_at_k=counted_mean(one),
        pass_hat_k=counted_mean(every),
        num_tasks=sum(able.values()),
        pass_at_k_error=counted_error(one),
        pass_hat_k_error=counted_error(every),
    )


def majority(tasks: Iterable[Sequence[tuple[int, bool]]]) -> Majority | None:
    """Return how often the answer that most rollouts of a task give passes.

    `tasks[t][r]` is (answer, whether it passes) of a scored rollout that has an
    answer. Of answers that are equally common each counts by its share; an answer
    whose rollouts do not agree passes when more of them pass than miss, and by half
    when as many. None where no task has an answer.
    """
    rates: Counter[Fraction] = Counter()
    rollouts = tied = split = 0
    for answers in tasks:
        if not answers:
            continue
        rollouts += len(answers)
        given = Counter(answer for answer, _ in answers)
        passes = Counter(answer for answer, passed in answers if passed)
        most = max(given.values())
        winners = [answer for answer, count in given.items() if count == most]
        verdicts = [_verdict(passes[answer], most) for answer in winners]
        rates[sum(verdicts, Fraction()) / len(winners)] += 1
        tied += len(winners) > 1
        split += any(0 < passes[answer] < count for answer, count in given.items())
    if not rates:
        return None
    num_tasks = rates.total()
    total = sum((rate * count for rate, count in rates.items()), Fraction())
    return Majority(
        pass_rate=float(total / num_tasks),
        num_tasks=num_tasks,
        num_rollouts=rollouts,
        num_tied=tied,
        num_split=split,
    )


def _verdict(passes: int, given: int) -> Fraction:
    if 2 * passes == given:
        return Fraction(1, 2)
    return Fraction(2 * passes > given)
