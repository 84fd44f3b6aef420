"""Passing: one rollout, k tries at a task, and the majority answer.

Estimators: `statistics.md` D1; pass@k is Chen et al. 2021 (arXiv 2107.03374), unbiased
and undefined for k > n, where 1 - (1 - c/n)^k would be too low.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import msgspec

from reward_profiling.insights.table_rows import scored_rows
from reward_profiling.insights.units import PassCounts, Unit, pass_counts
from reward_profiling.numerics.uncertainty import (
    counted_error,
    counted_mean,
    mean_of,
    standard_error,
)
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import is_pass
from reward_profiling.profiling.rollout_table import RolloutTable

_EVERY_K = 16


class PassAt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Passing with k tries: means over the tasks with k scored rollouts or more."""

    k: int
    """Tries."""

    pass_at_k: float
    """Chance that at least one of k passes (unbiased, Chen et al. 2021)."""

    pass_hat_k: float
    """Chance that all k pass, pass^k (unbiased)."""

    num_tasks: int
    """Tasks behind both."""

    pass_at_k_error: float | None
    """Standard error of `pass_at_k` over tasks; None below two."""

    pass_hat_k_error: float | None
    """Standard error of `pass_hat_k` over tasks; None below two."""


class Majority(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often the majority answer of a task passes."""

    pass_rate: float
    """Share of tasks whose most common answer passes; tied answers share the task."""

    num_tasks: int
    """Tasks with at least one scored rollout that has an answer: its n."""

    num_rollouts: int
    """Scored rollouts that have an answer."""

    num_tied: int
    """Tasks in which several answers were equally common."""

    num_split: int
    """Tasks in which one answer both passed and failed; its more frequent verdict
    counts."""


class Passing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pass rates at the threshold of `ReadingSettings`."""

    pass_rate: float | None
    """Mean over tasks of the share of scored rollouts that pass: pass@1."""

    num_tasks: int
    """Scored tasks: its n."""

    pass_rate_error: float | None
    """Its standard error over tasks; None below two."""

    passed: int
    """Scored rollouts that pass."""

    num_rollouts: int
    """Scored rollouts."""

    curve: tuple[PassAt, ...]
    """By k, ascending: every k to 16, then powers of two and the most repeats."""

    majority: Majority | None = None
    """None if no answer field was given, or no record has it."""


def passing_of(
    table: RolloutTable,
    units: Sequence[Unit],
    options: ProfileOptions,
    answers: Sequence[int] | None,
) -> Passing:
    """Return how often rollouts of some units pass.

    `answers[row]` is a digest of the extracted answer, 0 if a record has none; None if
    no answer field is given.
    """
    rates = [unit.c / unit.n for unit in units if unit.n]
    return Passing(
        pass_rate=mean_of(rates) if rates else None,
        num_tasks=len(rates),
        pass_rate_error=standard_error(rates),
        passed=sum(unit.c for unit in units),
        num_rollouts=sum(unit.n for unit in units),
        curve=pass_curve(pass_counts(units)),
        majority=(
            None
            if answers is None
            else majority(
                _answered(table, unit, answers, options.pass_threshold)
                for unit in units
            )
        ),
    )


def _answered(
    table: RolloutTable, unit: Unit, answers: Sequence[int], threshold: float
) -> list[tuple[int, bool]]:
    """Return (answer, passes) of each scored rollout that has an answer."""
    return [
        (answers[row], is_pass(table.reward[row], threshold))
        for row in scored_rows(table, unit.rows)
        if answers[row]
    ]


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that one of k tries passes, if c of n passed.

    All arithmetic before the last division is on integers, so the result is correctly
    rounded.

    Raises:
        ValueError: k is not in 1..n; more tries than rollouts cannot be estimated.
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
        raise ValueError(f"{n} rollouts cannot estimate {k} tries")


def ks(most: int) -> Iterator[int]:
    """Yield the k of a curve: every k to 16, then powers of two and the largest."""
    yield from range(1, min(most, _EVERY_K) + 1)
    power = 2 * _EVERY_K
    while power < most:
        yield power
        power *= 2
    if most > _EVERY_K:
        yield most


def pass_curve(counts: PassCounts) -> tuple[PassAt, ...]:
    """Return pass@k and pass^k by k, each over the tasks with n >= k.

    Empty if no task has a scored rollout.
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
    """Return how often the most common answer of a task passes.

    `tasks[t][r]` is (answer, passes) of a scored rollout that has an answer. Equally
    common answers share their task. An answer with different verdicts takes the more
    frequent one; half a pass if both are equally frequent. None if no task has an
    answer.
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
