"""Comparison: is the candidate better than the baseline on the tasks that both ran.

Tasks are paired, so that how hard they are cancels out (`statistics.md` D2; Miller
2024, arXiv 2411.00640). What cannot be told is said to be so: a verdict is PASS,
REGRESSED or INCONCLUSIVE.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge

from reward_profiling.insights.lengths import pearson
from reward_profiling.insights.schema import Interval
from reward_profiling.numerics.figures import figure, signed_figure
from reward_profiling.numerics.student_t import Z_975, t_975
from reward_profiling.numerics.uncertainty import (
    MIN_TASKS,
    mean_of,
    rerun_error,
    standard_error,
    zero_upper_bound,
)
from reward_profiling.profiling.finding import Finding
from reward_profiling.values import Checked

SCHEMA_VERSION = 1
Judgement = Literal["PASS", "REGRESSED", "INCONCLUSIVE"]
Measure = Literal["reward", "pass-rate"]
Z_80 = 0.8416212335729143
"""The 80 % quantile of the normal distribution: a power of 80 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions(Checked):
    """What is compared, and what is too much worse."""

    max_regression: Annotated[float, Ge(0)] | None = None
    """How much worse the candidate may be, in units of the measure. Default: no
    verdict, only numbers."""

    measure: Measure = "reward"
    """What is compared: the mean reward of a task, or its pass rate."""

    every_agent: bool = False
    """Let the verdict be the worst of the agents', instead of that over all tasks."""

    pass_threshold: float = 1.0
    """A rollout passes when its reward is at least this, give or take 1e-9."""


class Side(NamedTuple):
    """One task in one run; n >= 1."""

    task_index: int | str
    n: int
    """Scored rollouts."""
    c: int
    """Of those, the ones that pass."""
    value: float
    """Mean reward or pass rate, as the measure says."""
    variance: float | None
    """Sample variance within the task; None below two rollouts."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A task that both runs scored."""

    agent: str
    baseline: Side
    candidate: Side
    label: str | None = None

    @property
    def difference(self) -> float:
        """Candidate less baseline."""
        return self.candidate.value - self.baseline.value


@dataclass(frozen=True, kw_only=True, slots=True)
class McNemar:
    """Tasks that most rollouts pass, before and after; exact, two-sided."""

    gained: int
    """Tasks that most rollouts pass now and did not before."""

    lost: int
    """Tasks that most rollouts passed before and do not now."""

    both: int
    """Tasks that pass in both."""

    neither: int
    """Tasks that pass in neither."""

    undecided: int
    """Tasks of which exactly half passes in one of the runs; left out."""

    p_value: float | None
    """Chance of so uneven a split or a worse one, were gains and losses equally likely;
    None where nothing flipped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Candidate less baseline over paired tasks."""

    agent: str | None
    """Name of the agent; None for all tasks together."""

    num_tasks: int
    """Tasks that both runs scored: the n of every field."""

    baseline_rollouts: int
    """Scored rollouts of those tasks in the baseline."""

    candidate_rollouts: int
    """Scored rollouts of those tasks in the candidate."""

    baseline_mean: float
    """Mean over tasks."""

    candidate_mean: float
    """Mean over tasks."""

    difference: float
    """candidate_mean less baseline_mean."""

    standard_error: float | None
    """Of the difference: std of the tasks' differences / sqrt(n); None below two."""

    interval: Interval | None
    """Of the difference, 95 %; None where `caution` says why."""

    caution: str | None
    """Why there is no interval, or what it is made of instead; None where nothing is
    amiss."""

    correlation: float | None
    """Between the tasks' means in both runs: what pairing gains."""

    mcnemar: McNemar
    """Passing tasks before and after."""

    detectable: float | None
    """Smallest true difference that this design would have found with 80 % power; None
    where the error is unknown."""

    tasks_needed: int | None
    """Tasks that would find a difference of `max_regression` with 80 % power; None
    without a bound, or where the error is unknown."""

    judgement: Judgement | None
    """None without a bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flip:
    """A task that most rollouts passed in one run and not in the other."""

    agent: str
    """Whose task."""

    baseline_task: int | str
    """Its index in the baseline."""

    candidate_task: int | str
    """Its index in the candidate."""

    label: str | None
    """The beginning of its prompt."""

    is_lost: bool
    """Whether it passed before."""

    baseline_passed: int
    """Passing rollouts before."""

    baseline_scored: int
    """Of so many."""

    candidate_passed: int
    """Passing rollouts now."""

    candidate_scored: int
    """Of so many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unpaired:
    """A task that is not compared."""

    agent: str
    """Whose task."""

    task_index: int | str
    """Its index in the run that has it."""

    label: str | None
    """The beginning of its prompt."""

    reason: str
    """Why not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Everything that two runs of the same tasks say of each other."""

    schema_version: int = SCHEMA_VERSION
    """Version of this schema."""

    baseline: str
    """The baseline's rollouts file."""

    candidate: str
    """The candidate's rollouts file."""

    baseline_model: str | None = None
    """Name of its model, where known."""

    candidate_model: str | None = None
    """Name of its model, where known."""

    measure: Measure
    """What was compared."""

    pass_threshold: float
    """What passes."""

    max_regression: float | None
    """How much worse the candidate may be; None for no verdict."""

    judgement: Judgement | None
    """The verdict; None without a bound."""

    overall: Difference
    """Over all paired tasks."""

    agents: tuple[Difference, ...]
    """One for each agent, in order of name."""

    flips: tuple[Flip, ...]
    """Lost tasks first, then by how far they moved."""

    only_baseline: tuple[Unpaired, ...] = ()
    """Tasks that only the baseline scored."""

    only_candidate: tuple[Unpaired, ...] = ()
    """Tasks that only the candidate scored."""

    warnings: tuple[str, ...] = ()
    """What a person should know, one sentence each."""


def mcnemar_p(gained: int, lost: int) -> float | None:
    """Return the exact two-sided p-value of a split; None where nothing flipped."""
    n = gained + lost
    if not n:
        return None
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << n))


def tasks_needed(variance: float, difference: float) -> int:
    """Return the tasks that find a difference at 5 % with 80 % power.

    `variance` is that of a task's difference: omega² + sigma_A²/K_A + sigma_B²/K_B,
    with the variance between tasks and those within them over their repeats.
    """
    found = (Z_975 + Z_80) ** 2 * variance / (difference * difference)
    return max(2, math.ceil(found - 1e-9))


def difference_of(
    agent: str | None, pairs: Sequence[Pair], options: CompareOptions
) -> Difference:
    """Return the difference over at least one paired task."""
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
        mcnemar=_mcnemar(pairs),
        detectable=(Z_975 + Z_80) * error if error else None,
        tasks_needed=(
            tasks_needed(error * error * len(pairs), margin)
            if error and margin
            else None
        ),
        judgement=None if margin is None else _judge(bounds.interval, margin),
    )


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
            "every task moved by the same amount: the interval is of repeats only",
        )
    # Nothing varies at all: what n tasks without a change leave possible.
    reach = zero_upper_bound(n) * _span(pairs)
    return _Reach(
        _around(mean, reach),
        f"no repeat differs from another: the interval is what {n} tasks that all moved"
        " alike leave possible",
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


def _judge(interval: Interval | None, margin: float) -> Judgement:
    if interval is None:
        return "INCONCLUSIVE"
    if interval.low >= -margin:
        return "PASS"
    return "REGRESSED" if interval.high < -margin else "INCONCLUSIVE"


def _passes(side: Side) -> bool | None:
    """Say whether most rollouts pass; None for exactly half."""
    return None if 2 * side.c == side.n else 2 * side.c > side.n


def _mcnemar(pairs: Sequence[Pair]) -> McNemar:
    told = [(_passes(pair.baseline), _passes(pair.candidate)) for pair in pairs]
    gained = told.count((False, True))
    lost = told.count((True, False))
    both, neither = told.count((True, True)), told.count((False, False))
    return McNemar(
        gained=gained,
        lost=lost,
        both=both,
        neither=neither,
        undecided=len(told) - gained - lost - both - neither,
        p_value=mcnemar_p(gained, lost),
    )


def flips_of(pairs: Sequence[Pair]) -> tuple[Flip, ...]:
    """Return the tasks that flipped: lost ones first, then by how far they moved."""
    flipped = [
        pair
        for pair in pairs
        if {_passes(pair.baseline), _passes(pair.candidate)} == {True, False}
    ]
    flipped.sort(key=lambda pair: (not _passes(pair.baseline), -abs(pair.difference)))
    return tuple(
        Flip(
            agent=pair.agent,
            baseline_task=pair.baseline.task_index,
            candidate_task=pair.candidate.task_index,
            label=pair.label,
            is_lost=bool(_passes(pair.baseline)),
            baseline_passed=pair.baseline.c,
            baseline_scored=pair.baseline.n,
            candidate_passed=pair.candidate.c,
            candidate_scored=pair.candidate.n,
        )
        for pair in flipped
    )


_WORST_FIRST: tuple[Judgement, ...] = ("REGRESSED", "INCONCLUSIVE", "PASS")


def judgement_of(
    overall: Difference, agents: Sequence[Difference], options: CompareOptions
) -> Judgement | None:
    """Return the verdict over all tasks, or the worst agent's where that is asked."""
    judged = [overall, *agents] if options.every_agent else [overall]
    verdicts = {one.judgement for one in judged}
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)


def finding_of(comparison: Comparison) -> Finding | None:
    """Return a comparison's verdict as a finding; None for a pass or no verdict.

    "regressed" is critical, "comparison_inconclusive" a warning.
    """
    overall = comparison.overall
    if comparison.judgement not in {"REGRESSED", "INCONCLUSIVE"}:
        return None
    is_regressed = comparison.judgement == "REGRESSED"
    return Finding(
        name="regressed" if is_regressed else "comparison_inconclusive",
        severity="critical" if is_regressed else "warning",
        agent=None,
        sentence=verdict_in_words(comparison),
        evidence={
            "difference": overall.difference,
            "low": overall.interval.low if overall.interval else None,
            "high": overall.interval.high if overall.interval else None,
            "tasks": overall.num_tasks,
            "max_regression": comparison.max_regression,
        },
        remedy=(
            "look at the tasks that flipped, in the comparison's file"
            if is_regressed
            else "more tasks or more repeats would tell; the comparison says how many"
        ),
    )


def verdict_in_words(comparison: Comparison) -> str:
    """Return the verdict as a sentence, with its numbers and their n."""
    overall = comparison.overall
    said = (
        f"{comparison.measure} {figure(overall.baseline_mean)} before and"
        f" {figure(overall.candidate_mean)} now: {signed_figure(overall.difference)}"
    )
    if overall.interval is not None:
        low, high = overall.interval.low, overall.interval.high
        said += f", 95 % interval {signed_figure(low)} to {signed_figure(high)}"
    said += f" (n={overall.num_tasks} paired task" + "s" * (overall.num_tasks != 1)
    if comparison.max_regression is not None:
        said += f"; at most {comparison.max_regression:g} worse is allowed"
    return said + ")"
