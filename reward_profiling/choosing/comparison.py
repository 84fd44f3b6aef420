"""The comparison of two runs of the same tasks: its schema.

The verdict is PASS, REGRESSED or, if the data do not decide, INCONCLUSIVE.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from reward_profiling.numerics.uncertainty import Interval
from reward_profiling.values import Checked

SCHEMA_VERSION = 1
Judgement = Literal["PASS", "REGRESSED", "INCONCLUSIVE"]
Measure = Literal["reward", "pass-rate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions(Checked):
    """What is compared, and what is too much worse."""

    max_regression: Annotated[float, Ge(0)] | None = None
    """How much worse the candidate may be, in units of the measure. Default: numbers
    without a verdict."""

    measure: Measure = "reward"
    """What is compared: the mean reward of a task, or its pass rate."""

    every_agent: bool = False
    """Use the worst verdict of all agents, instead of the verdict over all tasks."""

    pass_threshold: float = 1.0
    """A rollout passes when its reward is at least this, give or take 1e-9."""


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
