"""Derive: a table of rollouts becomes what the rewards say.

Pure, and linear in the rollouts. What a run has little of (agents, metrics, findings)
is made at once; the tasks come one by one, so that a long list of them need never be
held.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from reward_profiling.insights.checks import check_list
from reward_profiling.insights.learning_signal import (
    TELLING,
    bands,
    informativeness,
    task_class,
    useful_groups,
)
from reward_profiling.insights.lengths import correlation
from reward_profiling.insights.passing import majority, pass_curve
from reward_profiling.insights.schema import (
    Component,
    Coverage,
    Insights,
    Interval,
    Length,
    Metric,
    Passing,
    Reading,
    RewardEstimate,
    RolloutNumbers,
    RolloutState,
    Section,
    Signal,
    Subset,
    TaskInsight,
)
from reward_profiling.insights.table_reading import as_read
from reward_profiling.insights.units import Unit, scored_rewards, scored_rows, units_of
from reward_profiling.numerics.moments import quantile
from reward_profiling.numerics.uncertainty import (
    Bounds,
    caution,
    clopper_pearson,
    clustered_error,
    counted_mean,
    mean_interval,
    mean_of,
    rerun_error,
    span_of,
    standard_error,
    std,
    wilson,
    zero_upper_bound,
)
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import PASS_TOLERANCE, is_pass, num_passing
from reward_profiling.profiling.rollout_table import (
    NO,
    UNKNOWN,
    YES,
    RolloutStatus,
    RolloutTable,
)

MOST_ROLLOUTS = 1_000_000
"""Rollouts beyond which the file does not list them one by one."""
_MOSTLY = 0.9
_SEED = "seed"
_ID_WORDS = frozenset({"id", "idx", "index", "uid"})
"""Last words of names of columns that name something."""
_STATES: Mapping[int, RolloutState] = {
    RolloutStatus.SCORED: "scored",
    RolloutStatus.UNSCORED: "unscored",
    RolloutStatus.MASKED: "masked",
    RolloutStatus.FAILED: "failed",
    RolloutStatus.MISSING: "missing",
}
_KNOWN = {NO: False, YES: True, UNKNOWN: None}


def derive_insights(
    table: RolloutTable,
    options: ProfileOptions,
    answers: Sequence[int] | None = None,
) -> Insights:
    """Return everything that the rewards of a run say.

    `answers[row]` is a digest of the extracted answer, 0 where a record has none; None
    where no answer field is named.
    """
    derivation = Derivation(table, options, answers)
    return derivation.head.model_copy(update={"tasks": tuple(derivation.tasks())})


class Derivation:
    """One table's insights: the head at once, the tasks one by one."""

    def __init__(
        self,
        table: RolloutTable,
        options: ProfileOptions,
        answers: Sequence[int] | None = None,
    ) -> None:
        self.table = table = as_read(table, options)
        self.options = options
        self.answers = answers
        self.units = units_of(table, options)
        self.has_rollouts = len(table) <= MOST_ROLLOUTS

    @cached_property
    def head(self) -> Insights:
        """Everything but the tasks."""
        by_agent: dict[int, list[Unit]] = {}
        for unit in self.units:
            by_agent.setdefault(unit.agent, []).append(unit)
        agents = tuple(
            self._section(self.table.agents[agent], units)
            for agent, units in sorted(by_agent.items())
        )
        # The only agent's numbers are the run's.
        run = (
            agents[0].model_copy(update={"agent": None})
            if len(agents) == 1
            else self._section(None, self.units)
        )
        metrics = _metrics(self.table, self.units)
        return Insights(
            reading=_reading(self.options),
            run=run,
            agents=agents,
            findings=check_list.findings(
                self.table, by_agent, (run, *agents), metrics, self.options
            ),
            metrics=metrics,
            has_rollouts=self.has_rollouts,
            tasks=(),
        )

    def tasks(self) -> Iterator[TaskInsight]:
        """Yield each (task, agent), in key order, then by agent."""
        ranks = _ranks(self.units)
        for unit, rank in zip(self.units, ranks, strict=True):
            yield _task(self.table, unit, rank, has_rollouts=self.has_rollouts)

    def _section(self, agent: str | None, units: Sequence[Unit]) -> Section:
        table, options = self.table, self.options
        return Section(
            agent=agent,
            coverage=_coverage(table, units),
            reward=_reward(table, units, options.pass_threshold),
            passing=_passing(table, units, options, self.answers),
            signal=_signal(table, units, options),
            length=_length(table, units, options),
        )


def _reading(options: ProfileOptions) -> Reading:
    return Reading(
        pass_threshold=options.pass_threshold,
        pass_tolerance=PASS_TOLERANCE,
        signal_tolerance=options.signal_tolerance,
        answer_field=options.answer_field,
        leave_out_empty=options.leave_out_empty,
    )


def _coverage(table: RolloutTable, units: Sequence[Unit]) -> Coverage:
    counts: Counter[int] = Counter()
    classes: Counter[str] = Counter()
    for unit in units:
        for row in unit.rows:
            counts[table.status[row]] += 1
            if table.status[row] == RolloutStatus.FAILED:
                classes[table.failure_class.get(row, "unknown")] += 1
    planned = counts.total()
    return Coverage(
        num_tasks=len(units),
        num_scored_tasks=sum(unit.n > 0 for unit in units),
        planned=planned,
        scored=counts[RolloutStatus.SCORED],
        unscored=counts[RolloutStatus.UNSCORED],
        masked=counts[RolloutStatus.MASKED],
        failed=counts[RolloutStatus.FAILED],
        missing=counts[RolloutStatus.MISSING],
        scored_share=counts[RolloutStatus.SCORED] / planned if planned else None,
        failures_by_class=dict(sorted(classes.items())),
    )


def _reward(
    table: RolloutTable, units: Sequence[Unit], threshold: float
) -> RewardEstimate:
    told = [unit for unit in units if unit.n]
    means = [unit.mean for unit in told]
    error = standard_error(means)
    rewards = [scored_rewards(table, unit.rows) for unit in told]
    sums = [unit.n * unit.mean for unit in told]
    counts = [unit.n for unit in told]
    varied = [(u.variance, u.n) for u in told if u.variance is not None]
    rerun, num_rerun = rerun_error([v for v, _ in varied], [n for _, n in varied])
    zeros = _means_failures_as_zero(table, units)
    macro = mean_of(means) if means else None
    within = [v for v, _ in varied]
    low, high = (
        min(map(min, rewards), default=None),
        max(map(max, rewards), default=None),
    )
    return RewardEstimate(
        macro_mean=macro,
        num_tasks=len(told),
        standard_error=error,
        interval=_interval(means, low, high, threshold),
        caution=caution(error, len(told)),
        rerun_standard_error=rerun,
        num_rerun_tasks=num_rerun,
        micro_mean=counted_mean([(u.mean, u.n) for u in told]) if counts else None,
        num_rollouts=sum(counts),
        micro_standard_error=clustered_error(sums, counts),
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
    return _bounds(mean_interval(means, span_of(low, high, threshold)))


def _bounds(bounds: Bounds | None) -> Interval | None:
    return None if bounds is None else Interval(low=bounds.low, high=bounds.high)


def _means_failures_as_zero(table: RolloutTable, units: Sequence[Unit]) -> list[float]:
    lost = {RolloutStatus.FAILED, RolloutStatus.UNSCORED}
    means = []
    for unit in units:
        zeros = sum(table.status[row] in lost for row in unit.rows)
        if unit.n + zeros:
            share = unit.n / (unit.n + zeros)
            means.append(unit.mean * share if unit.n else 0.0)
    return means


def _pass_counts(units: Iterable[Unit]) -> Counter[tuple[int, int]]:
    return Counter((unit.n, unit.c) for unit in units if unit.n)


def _passing(
    table: RolloutTable,
    units: Sequence[Unit],
    options: ProfileOptions,
    answers: Sequence[int] | None,
) -> Passing:
    rates = [unit.c / unit.n for unit in units if unit.n]
    given = None
    if answers is not None:
        given = majority(
            [
                (answers[row], is_pass(table.reward[row], options.pass_threshold))
                for row in scored_rows(table, unit.rows)
                if answers[row]
            ]
            for unit in units
        )
    return Passing(
        pass_rate=mean_of(rates) if rates else None,
        num_tasks=len(rates),
        pass_rate_error=standard_error(rates),
        passed=sum(unit.c for unit in units),
        num_rollouts=sum(unit.n for unit in units),
        curve=pass_curve(_pass_counts(units)),
        majority=given,
    )


def _signal(
    table: RolloutTable, units: Sequence[Unit], options: ProfileOptions
) -> Signal:
    passes = _pass_counts(units)
    classes: Counter[str] = Counter(task_class(unit.n, unit.c) for unit in units)
    told = [unit for unit in units if unit.n >= TELLING]
    num_signal = sum(unit.has_signal for unit in told)
    never = [unit.n for unit in told if not unit.c]
    components, only = _components(table, units, options.signal_tolerance)
    return Signal(
        never=classes["never"],
        sometimes=classes["sometimes"],
        always=classes["always"],
        undetermined=classes["undetermined"],
        num_signal=num_signal,
        num_zero_signal=len(told) - num_signal,
        zero_signal_share=(len(told) - num_signal) / len(told) if told else None,
        num_signal_in_components_only=only,
        never_upper_bound=zero_upper_bound(min(never)) if never else None,
        never_rollouts=min(never, default=None),
        groups=useful_groups(Counter(unit.signature for unit in units), passes),
        components=components,
        bands=bands(passes),
    )


def _components(
    table: RolloutTable, units: Sequence[Unit], tolerance: float
) -> tuple[tuple[Component, ...], int]:
    """Return the components' numbers, and in how many tasks only they differ."""
    only: set[int] = set()
    found = []
    for name, column in sorted(table.components.items()):
        values: list[float] = []
        tasks = signal = here = 0
        for place, unit in enumerate(units):
            own = _known(column, scored_rows(table, unit.rows))
            values += own
            if len(own) < TELLING:
                continue
            differs = max(own) - min(own) > tolerance
            is_only = differs and unit.n >= TELLING and not unit.has_signal
            tasks += 1
            signal += differs
            here += is_only
            only |= {place} if is_only else set()
        if values:
            mean = mean_of(values)
            found.append(
                Component(
                    name=name,
                    num_rollouts=len(values),
                    mean=mean,
                    std=std(values, mean),
                    num_tasks=tasks,
                    num_signal=signal,
                    num_signal_only_here=here,
                )
            )
    return tuple(found), len(only)


def _known(column: Sequence[float], rows: Iterable[int]) -> list[float]:
    """Return a column's values of some rows; NaN is none."""
    return [value for row in rows if (value := column[row]) == value]


def _length(
    table: RolloutTable, units: Sequence[Unit], options: ProfileOptions
) -> Length:
    rows = [row for unit in units for row in unit.rows if _is_collected(table, row)]
    tokens = sorted(_known(table.output_tokens, rows))
    scored = scored_rows(table, rows)
    threshold = options.pass_threshold

    def subset(kept: list[int]) -> Subset:
        return _subset(table, kept, threshold)

    passed = [row for row in scored if is_pass(table.reward[row], threshold)]
    missed = [row for row in scored if not is_pass(table.reward[row], threshold)]
    return Length(
        correlation=correlation(
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
        empty=subset([row for row in scored if table.empty[row] == YES]),
        answered=subset([row for row in scored if table.empty[row] == NO]),
        passed=subset(passed),
        missed=subset(missed),
    )


def _is_collected(table: RolloutTable, row: int) -> bool:
    return table.status[row] <= RolloutStatus.MASKED


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
    tokens = _known(table.output_tokens, rows)
    passed = num_passing(rewards, threshold)
    return Subset(
        num_rollouts=len(rows),
        pass_rate=passed / len(rows) if rows else None,
        mean_reward=mean_of(rewards) if rewards else None,
        mean_tokens=mean_of(tokens) if tokens else None,
        num_with_tokens=len(tokens),
    )


def _metrics(table: RolloutTable, units: Sequence[Unit]) -> tuple[Metric, ...]:
    rows = [
        row
        for row, status in enumerate(table.status)
        if status <= RolloutStatus.UNSCORED
    ]
    found = []
    for name, column in table.metrics.items():
        values = _known(column, rows)
        if not values:
            continue
        mean = mean_of(values)
        found.append(
            Metric(
                name=name,
                num_rollouts=len(values),
                mean=mean,
                std=std(values, mean),
                min=min(values),
                max=max(values),
                is_identifier=_is_identifier(name, column, units, values),
            )
        )
    return tuple(sorted(found, key=lambda metric: metric.is_identifier))


def _is_identifier(
    name: str, column: Sequence[float], units: Sequence[Unit], values: Sequence[float]
) -> bool:
    """Say whether a column names its task: whole, one value in each task, its own.

    Where the name says that it is one, a few tasks are enough.
    """
    if not all(map(float.is_integer, values)):
        return False
    last = name.lower().rpartition("_")[2]
    if last == _SEED:
        return True
    by_task: dict[int, set[float]] = {}
    repeated = False
    for unit in units:
        own = _known(column, unit.rows)
        known = by_task.setdefault(unit.task, set())
        known.update(own)
        repeated = repeated or len(own) > 1
        if len(known) > 1:
            return False
    if last in _ID_WORDS:
        return True
    told = [value for known in by_task.values() for value in known]
    enough = len(told) > TELLING and repeated
    return enough and len(set(told)) >= _MOSTLY * len(told)


def _ranks(units: Sequence[Unit]) -> list[int | None]:
    """Return each unit's place by p(1 - p), 1 being the most informative."""
    told = [place for place, unit in enumerate(units) if unit.n >= TELLING]
    told.sort(key=lambda place: -(informativeness(units[place].n, units[place].c) or 0))
    ranks: list[int | None] = [None] * len(units)
    for rank, place in enumerate(told, start=1):
        ranks[place] = rank
    return ranks


def _task(
    table: RolloutTable, unit: Unit, rank: int | None, *, has_rollouts: bool
) -> TaskInsight:
    counts = Counter(table.status[row] for row in unit.rows)
    rewards = scored_rewards(table, unit.rows)
    collected = [row for row in unit.rows if _is_collected(table, row)]
    tokens = _known(table.output_tokens, collected)
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
        interval=_bounds(wilson(c, n)) if n else None,
        exact_interval=_bounds(clopper_pearson(c, n)) if n else None,
        upper_bound=zero_upper_bound(n) if n and not c else None,
        lower_bound=1.0 - zero_upper_bound(n) if n and c == n else None,
        task_class=task_class(n, c),
        has_signal=unit.has_signal if n >= TELLING else None,
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
        rollouts=_rollouts(table, unit.rows) if has_rollouts else None,
    )


def _rollouts(table: RolloutTable, rows: Sequence[int]) -> RolloutNumbers:
    return RolloutNumbers.model_construct(
        rollout_index=tuple(table.rollout[row] for row in rows),
        state=tuple(_STATES[table.status[row]] for row in rows),
        reward=_or_none(table.reward[row] for row in rows),
        output_tokens=_or_none(table.output_tokens[row] for row in rows),
        is_truncated=tuple(_KNOWN[table.truncated[row]] for row in rows),
        is_empty=tuple(_KNOWN[table.empty[row]] for row in rows),
        attempts=tuple(table.attempts[row] for row in rows),
    )


def _or_none(values: Iterable[float]) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in values)
