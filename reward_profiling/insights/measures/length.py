"""Length: reward against output tokens, what was cut off, what is empty.

Harder tasks have longer answers, so a correlation over all rollouts says little. The
correlation within tasks first subtracts each task's own means (`statistics.md` D5).
"""

import math
from collections.abc import Sequence
from itertools import chain

import msgspec

from reward_profiling.insights.table_rows import (
    collected_rows,
    known_values,
    scored_rows,
)
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.correlation import (
    Groups,
    pearson,
    pearson_within,
    spearman,
    spearman_within,
)
from reward_profiling.numerics.moments import quantile
from reward_profiling.numerics.uncertainty import mean_of
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import is_pass, num_passing
from reward_profiling.profiling.rollout_table import NO, UNKNOWN, YES, RolloutTable


class Correlation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Reward against output tokens, over the scored rollouts with both."""

    num_rollouts: int
    """Rollouts: its n."""

    num_tasks: int
    """Tasks that they belong to."""

    pearson: float | None
    """Linear correlation, over all rollouts; None where one side is constant."""

    spearman: float | None
    """Rank correlation, over all rollouts."""

    within_pearson: float | None
    """Linear correlation once each task's own means are taken off: length within a
    task, not between tasks."""

    within_spearman: float | None
    """The same with ranks within each task."""


class Subset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scored rollouts of one kind, such as the truncated ones."""

    num_rollouts: int
    """Rollouts of the kind with a reward: the n of the other fields."""

    pass_rate: float | None
    """Share that pass; None for none."""

    mean_reward: float | None
    """Mean reward; None for none."""

    mean_tokens: float | None
    """Mean output tokens of those that have a count; None for none."""

    num_with_tokens: int
    """The n of `mean_tokens`."""


class Length(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What answers are long, cut off or empty, and what that does to rewards."""

    correlation: Correlation
    """Reward against output tokens."""

    mean_tokens: float | None
    """Mean output tokens of all collected rollouts that have a count."""

    median_tokens: float | None
    """Their median."""

    p95_tokens: float | None
    """Their 95th percentile."""

    max_tokens: float | None
    """Their most."""

    num_with_tokens: int
    """Their n."""

    num_truncation_known: int
    """Records that say whether they were cut off."""

    num_truncated: int
    """Of those, how many were."""

    truncated: Subset
    """The scored ones that were cut off."""

    finished: Subset
    """The scored ones that were not."""

    num_empty_known: int
    """Records that show whether they hold an answer."""

    num_empty: int
    """Of those, how many hold neither text nor a call of a tool, thoughts aside."""

    num_only_thought: int
    """Of the empty ones, how many hold thinking and nothing after it."""

    num_records: int
    """Records, whether or not they show these things."""

    empty: Subset
    """The scored ones without an answer."""

    answered: Subset
    """The scored ones with one."""

    passed: Subset
    """The scored ones that pass."""

    missed: Subset
    """The scored ones that do not."""


def length_of(
    table: RolloutTable, units: Sequence[Unit], options: ProfileOptions
) -> Length:
    """Return how long the answers of some units are, and what that does to rewards."""
    rows = [row for unit in units for row in collected_rows(table, unit.rows)]
    tokens = sorted(known_values(table.output_tokens, rows))
    scored = scored_rows(table, rows)
    threshold = options.pass_threshold

    def subset(kept: list[int]) -> Subset:
        return _subset(table, kept, threshold)

    passed = [row for row in scored if is_pass(table.reward[row], threshold)]
    missed = [row for row in scored if not is_pass(table.reward[row], threshold)]
    return Length(
        correlation=correlate(
            [_tokens_and_rewards(table, unit) for unit in units],
            options.signal_tolerance,
        ),
        mean_tokens=mean_of(tokens) if tokens else None,
        median_tokens=quantile(tokens, 0.5) if tokens else None,
        p95_tokens=quantile(tokens, 0.95) if tokens else None,
        max_tokens=tokens[-1] if tokens else None,
        num_with_tokens=len(tokens),
        num_truncation_known=sum(table.truncated[row] != UNKNOWN for row in rows),
        num_truncated=sum(table.truncated[row] == YES for row in rows),
        truncated=subset([row for row in scored if table.truncated[row] == YES]),
        finished=subset([row for row in scored if table.truncated[row] == NO]),
        num_empty_known=sum(table.empty[row] != UNKNOWN for row in rows),
        num_empty=sum(table.empty[row] == YES for row in rows),
        num_only_thought=sum(table.only_thought[row] for row in rows),
        num_records=len(rows),
        empty=subset([row for row in scored if table.empty[row] == YES]),
        answered=subset([row for row in scored if table.empty[row] == NO]),
        passed=subset(passed),
        missed=subset(missed),
    )


def _tokens_and_rewards(
    table: RolloutTable, unit: Unit
) -> tuple[list[float], list[float]]:
    rows = [
        row
        for row in scored_rows(table, unit.rows)
        if not math.isnan(table.output_tokens[row])
    ]
    return [table.output_tokens[row] for row in rows], [table.reward[r] for r in rows]


def _subset(table: RolloutTable, rows: list[int], threshold: float) -> Subset:
    rewards = [table.reward[row] for row in rows]
    tokens = known_values(table.output_tokens, rows)
    passed = num_passing(rewards, threshold)
    return Subset(
        num_rollouts=len(rows),
        pass_rate=passed / len(rows) if rows else None,
        mean_reward=mean_of(rewards) if rewards else None,
        mean_tokens=mean_of(tokens) if tokens else None,
        num_with_tokens=len(tokens),
    )


def correlate(tasks: Groups, tolerance: float) -> Correlation:
    """Correlate reward with output tokens, over all rollouts and within tasks.

    `tasks[t]` is (tokens, rewards) of the rollouts of task t that have both. If the
    rewards span no more than `tolerance`, the correlation is None.
    """
    tasks = [(tokens, rewards) for tokens, rewards in tasks if tokens]
    x = list(chain.from_iterable(tokens for tokens, _ in tasks))
    y = list(chain.from_iterable(rewards for _, rewards in tasks))
    return Correlation(
        num_rollouts=len(x),
        num_tasks=len(tasks),
        pearson=pearson(x, y, tolerance),
        spearman=spearman(x, y, tolerance),
        within_pearson=pearson_within(tasks, tolerance),
        within_spearman=spearman_within(tasks, tolerance),
    )
