"""Tasks: the numbers of each (task, agent), with its rollouts in columns."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reward_profiling.insights.measures.learning_signal import (
    TaskClass,
    informativeness,
    task_class,
)
from reward_profiling.insights.table_rows import (
    collected_rows,
    known_values,
    scored_rewards,
    scored_rows,
)
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.uncertainty import (
    Interval,
    clopper_pearson,
    mean_of,
    std,
    wilson,
    zero_upper_bound,
)
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import (
    NO,
    STATUS_NAMES,
    UNKNOWN,
    YES,
    RolloutStatus,
    RolloutTable,
    StatusName,
)

_KNOWN = {NO: False, YES: True, UNKNOWN: None}


class RolloutNumbers(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The rollouts of one task, in columns of equal length, by rollout index."""

    rollout_index: tuple[int | str, ...]
    """As it stands in the files."""

    state: tuple[StatusName, ...]
    """What became of it."""

    reward: tuple[float | None, ...]
    """None where it is not scored."""

    output_tokens: tuple[float | None, ...]
    """None where unknown."""

    is_truncated: tuple[bool | None, ...]
    """None where unknown."""

    is_empty: tuple[bool | None, ...]
    """None where unknown."""

    attempts: tuple[int, ...]
    """Recorded failures."""


class TaskInsight(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One task as one agent ran it."""

    task_index: int | str
    """As it stands in the files."""

    agent: str
    """Name of the agent."""

    label: str | None = None
    """The beginning of the task's last message, on one line; None if not read."""

    planned: int
    """Rollouts planned."""

    scored: int
    """Rollouts whose reward counts: the n of every number below."""

    unscored: int
    """Records without a usable reward."""

    masked: int
    """Records whose reward measures nothing."""

    failed: int
    """No record, but a recorded failure."""

    missing: int
    """Neither."""

    passed: int
    """Scored rollouts that pass (c)."""

    pass_rate: float | None
    """passed / scored; None for none."""

    interval: Interval | None
    """Wilson's interval of the pass rate."""

    exact_interval: Interval | None
    """Clopper and Pearson's interval: wider, and never below its stated coverage."""

    upper_bound: float | None
    """For a task that never passed: one-sided upper bound of its pass rate."""

    lower_bound: float | None
    """For a task that always passed: one-sided lower bound of its pass rate."""

    task_class: TaskClass
    """Never, sometimes, always, or undetermined."""

    has_signal: bool | None
    """Whether its rewards differ by more than the tolerance; None below two."""

    informativeness: float | None
    """p(1 - p) of the pass rate, 0 to 0.25; None where it is undetermined."""

    rank: int | None
    """1 for the most informative; ties in key order; None where undetermined."""

    mean: float | None
    """Mean reward."""

    std: float | None
    """Standard deviation (ddof 1); None below two."""

    min: float | None
    """Smallest reward."""

    max: float | None
    """Largest reward."""

    mean_tokens: float | None
    """Mean output tokens of its records that have a count."""

    num_with_tokens: int
    """The n of `mean_tokens`."""

    truncated: int
    """Records that were cut off."""

    empty: int
    """Records without an answer."""

    distinct_answers: int | None
    """Different answers among its scored rollouts; None where no answer is known."""

    rollouts: RolloutNumbers | None = None
    """Its rollouts; None where `Insights.has_rollouts` is false."""


def task_insights(
    table: RolloutTable, units: Sequence[Unit], *, has_rollouts: bool
) -> Iterator[TaskInsight]:
    """Yield each unit's numbers, in their order.

    They come one by one, so that a long list never has to fit in memory.
    """
    for unit, rank in zip(units, _ranks(units), strict=True):
        rollouts = _rollouts(table, unit.rows) if has_rollouts else None
        yield _task(table, unit, rank, rollouts)


def _ranks(units: Sequence[Unit]) -> list[int | None]:
    """Return each unit's place by p(1 - p), 1 being the most informative."""
    told = [place for place, unit in enumerate(units) if unit.n >= MIN_ROLLOUTS]
    told.sort(key=lambda place: -(informativeness(units[place].n, units[place].c) or 0))
    ranks: list[int | None] = [None] * len(units)
    for rank, place in enumerate(told, start=1):
        ranks[place] = rank
    return ranks


def _task(
    table: RolloutTable, unit: Unit, rank: int | None, rollouts: RolloutNumbers | None
) -> TaskInsight:
    counts = Counter(table.status[row] for row in unit.rows)
    rewards = scored_rewards(table, unit.rows)
    collected = collected_rows(table, unit.rows)
    tokens = known_values(table.output_tokens, collected)
    answers = {table.answer[row] for row in scored_rows(table, unit.rows)} - {0}
    n, c = unit.n, unit.c
    return TaskInsight(
        task_index=table.tasks[unit.task],
        agent=table.agents[unit.agent],
        planned=len(unit.rows),
        scored=n,
        unscored=counts[RolloutStatus.UNSCORED],
        masked=counts[RolloutStatus.MASKED],
        failed=counts[RolloutStatus.FAILED],
        missing=counts[RolloutStatus.MISSING],
        passed=c,
        pass_rate=c / n if n else None,
        interval=wilson(c, n) if n else None,
        exact_interval=clopper_pearson(c, n) if n else None,
        upper_bound=zero_upper_bound(n) if n and not c else None,
        lower_bound=1.0 - zero_upper_bound(n) if n and c == n else None,
        task_class=task_class(n, c),
        has_signal=unit.has_signal if n >= MIN_ROLLOUTS else None,
        informativeness=informativeness(n, c),
        rank=rank,
        mean=unit.mean if n else None,
        std=std(rewards, unit.mean) if n else None,
        min=min(rewards, default=None),
        max=max(rewards, default=None),
        mean_tokens=mean_of(tokens) if tokens else None,
        num_with_tokens=len(tokens),
        truncated=sum(table.truncated[row] == YES for row in collected),
        empty=sum(table.empty[row] == YES for row in collected),
        distinct_answers=len(answers) or None,
        rollouts=rollouts,
    )


def _rollouts(table: RolloutTable, rows: Sequence[int]) -> RolloutNumbers:
    return RolloutNumbers(
        rollout_index=tuple(table.rollout[row] for row in rows),
        state=tuple(STATUS_NAMES[table.status[row]] for row in rows),
        reward=_or_none(table.reward[row] for row in rows),
        output_tokens=_or_none(table.output_tokens[row] for row in rows),
        is_truncated=tuple(_KNOWN[table.truncated[row]] for row in rows),
        is_empty=tuple(_KNOWN[table.empty[row]] for row in rows),
        attempts=tuple(table.attempts[row] for row in rows),
    )


def _or_none(values: Iterable[float]) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in values)
