"""Reward: the mean, its precision, and its basis.

Formulas: `statistics.md` D2.
"""

import math
from collections.abc import Sequence

import msgspec

from reward_profiling.insights.table_rows import scored_rewards
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.uncertainty import (
    Interval,
    caution,
    clustered_error,
    counted_mean,
    mean_interval,
    mean_of,
    rerun_error,
    span_of,
    standard_error,
    std,
)
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable


class RewardEstimate(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The mean reward, its precision, and its basis."""

    macro_mean: float | None
    """The headline: mean over tasks of the task's mean reward."""

    num_tasks: int
    """Scored tasks: the headline's n."""

    standard_error: float | None
    """Of the headline, with tasks as the sample: std of the task means / sqrt(n). None
    below two tasks."""

    interval: Interval | None
    """Of the headline (`uncertainty.mean_interval`); it may be asymmetric. None for the
    reason in `caution`."""

    caution: str | None
    """Why there is no interval, or how it misleads; None if neither applies."""

    rerun_standard_error: float | None
    """How far the headline would move if the same tasks were run again:
    sqrt(sum of var_i / n_i) / N over tasks with two rollouts or more."""

    num_rerun_tasks: int
    """Tasks behind `rerun_standard_error`: its N."""

    micro_mean: float | None
    """Mean over rollouts, all with the same weight."""

    num_rollouts: int
    """Scored rollouts: the n of `micro_mean`."""

    micro_standard_error: float | None
    """Of `micro_mean`, clustered by task with the C/(C - 1) correction."""

    mean_failures_as_zero: float | None
    """The headline if every failed and unscored rollout had a reward of 0."""

    num_tasks_failures_as_zero: int
    """Its n: tasks with a scored, failed or unscored rollout."""

    between_task_std: float | None
    """Spread of the task means (ddof 1)."""

    within_task_std: float | None
    """Square root of the mean variance within a task, over `num_rerun_tasks`."""

    min: float | None
    """Smallest reward."""

    max: float | None
    """Largest reward."""


def reward_of(
    table: RolloutTable, units: Sequence[Unit], threshold: float
) -> RewardEstimate:
    """Estimate the mean reward of some units; `threshold` is the reward that passes."""
    told = [unit for unit in units if unit.n]
    means, counts = [unit.mean for unit in told], [unit.n for unit in told]
    varied = [(u.variance, u.n) for u in told if u.variance is not None]
    within = [variance for variance, _ in varied]
    error = standard_error(means)
    rerun, num_rerun = rerun_error(within, [n for _, n in varied])
    zeros = _means_failures_as_zero(table, units)
    rewards = [scored_rewards(table, unit.rows) for unit in told]
    low = min(map(min, rewards), default=None)
    high = max(map(max, rewards), default=None)
    return RewardEstimate(
        macro_mean=mean_of(means) if means else None,
        num_tasks=len(told),
        standard_error=error,
        interval=_interval(means, low, high, threshold),
        caution=caution(error, len(told)),
        rerun_standard_error=rerun,
        num_rerun_tasks=num_rerun,
        micro_mean=counted_mean([(u.mean, u.n) for u in told]) if told else None,
        num_rollouts=sum(counts),
        micro_standard_error=clustered_error([u.n * u.mean for u in told], counts),
        mean_failures_as_zero=mean_of(zeros) if zeros else None,
        num_tasks_failures_as_zero=len(zeros),
        between_task_std=std(means),
        within_task_std=math.sqrt(mean_of(within)) if within else None,
        min=low,
        max=high,
    )


def _interval(
    means: Sequence[float], low: float | None, high: float | None, threshold: float
) -> Interval | None:
    if low is None or high is None:
        return None
    return mean_interval(means, span_of(low, high, threshold))


def _means_failures_as_zero(table: RolloutTable, units: Sequence[Unit]) -> list[float]:
    lost = {RolloutStatus.FAILED, RolloutStatus.UNSCORED}
    means = []
    for unit in units:
        zeros = sum(table.status[row] in lost for row in unit.rows)
        if unit.n + zeros:
            share = unit.n / (unit.n + zeros)
            means.append(unit.mean * share if unit.n else 0.0)
    return means
