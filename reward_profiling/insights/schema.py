"""What the rewards say: the models of `<stem>_insights.json`, a versioned schema.

The file is one JSON object, an `Insights`. The report and the terminal read only it.
A unit of statistics is a (task, agent) pair: a task that is fanned out to several
agents counts once for each. Rates are fractions 0..1; unknown is null, never 0; no
mean or rate stands without the count that it was taken over. The same records give
the same file, whatever the order of their lines.

Version 1 is the first. A field that is added keeps the version; one that is removed,
renamed or given another meaning raises it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from reward_profiling.profiling.finding import Finding

SCHEMA_VERSION = 1

TaskClass = Literal["never", "sometimes", "always", "undetermined"]
"""By how many of a task's scored rollouts passed: none, some, all; "undetermined" with
fewer than two of them."""

RolloutState = Literal["scored", "unscored", "masked", "failed", "missing"]
"""What became of a planned rollout (`rollout_table.RolloutStatus`)."""


class Computed(BaseModel):
    """A value that nobody sets; its class is made ready when the first one is."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        hide_input_in_errors=True,
        ser_json_inf_nan="null",
    )


class Interval(Computed):
    """Bounds of an estimate at the confidence that `Reading` states."""

    low: float
    """Lower bound."""

    high: float
    """Upper bound."""


class Reading(Computed):
    """How rewards were read: the settings behind every number of the file."""

    pass_threshold: float
    """A rollout passes when its reward is at least this."""

    pass_tolerance: float
    """How far below the threshold a reward may lie, for rounding."""

    signal_tolerance: float
    """Rewards that differ by no more than this are the same."""

    leave_out_empty: bool = False
    """Whether records without an answer are counted as masked and decide nothing."""

    confidence: float = 0.95
    """Confidence of every interval, and of the one-sided bounds."""

    degrees_lost: int = 1
    """What standard deviations divide by less than n (ddof)."""

    clusters: str = "task"
    """What standard errors of means over rollouts are clustered by; squares are
    multiplied by C/(C - 1), C being the number of clusters."""

    failures_as_zero: bool = False
    """Whether headline means count a failed rollout as 0; `mean_failures_as_zero`
    gives the other denominator beside each."""

    answer_field: str | None = None
    """The record's field that answers are compared by for the majority; None where
    none was named."""


class Coverage(Computed):
    """How much of a plan there is; the states add up to `planned`."""

    num_tasks: int
    """(task, agent) pairs that were planned."""

    num_scored_tasks: int
    """Of those, pairs with at least one scored rollout."""

    planned: int
    """Rollouts planned."""

    scored: int
    """Rollouts whose reward is a finite number and counts."""

    unscored: int
    """Rollouts with a record whose reward is missing, null, text or not finite."""

    masked: int
    """Rollouts with a record whose reward measures nothing, by the server's word."""

    failed: int
    """Rollouts without a record but with a recorded failure."""

    missing: int
    """Rollouts with neither."""

    scored_share: float | None
    """scored / planned; None for an empty plan."""

    failures_by_class: dict[str, int]
    """Failed rollouts by the class of their last recorded failure."""

    @property
    def collected(self) -> int:
        """Rollouts with a record."""
        return self.scored + self.unscored + self.masked


class RewardEstimate(Computed):
    """The mean reward, how sure it is, and over what."""

    macro_mean: float | None
    """The headline: mean over tasks of the task's mean reward."""

    num_tasks: int
    """Scored tasks: the headline's n."""

    standard_error: float | None
    """Of the headline, tasks being the sample: std of the task means / sqrt(n). None
    below two tasks."""

    interval: Interval | None
    """Of the headline (`uncertainty.mean_interval`); need not be symmetric about it.
    None where `caution` says why."""

    caution: str | None
    """Why there is no interval, or what is to be thought of; None where nothing is."""

    rerun_standard_error: float | None
    """How far the headline would move were the same tasks run again, tasks being fixed:
    sqrt(sum of var_i / n_i) / N over tasks with two rollouts or more."""

    num_rerun_tasks: int
    """Tasks behind `rerun_standard_error`: its N."""

    micro_mean: float | None
    """Mean over rollouts, each counting the same."""

    num_rollouts: int
    """Scored rollouts: the n of `micro_mean`."""

    micro_standard_error: float | None
    """Of `micro_mean`, clustered by task with the C/(C - 1) correction."""

    mean_failures_as_zero: float | None
    """The headline, were every failed and unscored rollout a reward of 0."""

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


class PassAt(Computed):
    """Passing with k tries: means over the tasks with k scored rollouts or more."""

    k: int
    """Tries."""

    pass_at_k: float
    """Chance that at least one of k passes (unbiased, Chen et al. 2021)."""

    pass_hat_k: float
    """Chance that all k pass, pass^k (unbiased)."""

    num_tasks: int
    """Tasks that both stand on."""

    pass_at_k_error: float | None
    """Standard error of `pass_at_k` over tasks; None below two."""

    pass_hat_k_error: float | None
    """Standard error of `pass_hat_k` over tasks; None below two."""


class Majority(Computed):
    """What the answer that most rollouts of a task give comes to."""

    pass_rate: float
    """Share of tasks whose commonest answer passes; a tie counts by halves, thirds …"""

    num_tasks: int
    """Tasks with at least one scored rollout that has an answer: its n."""

    num_rollouts: int
    """Scored rollouts that have an answer."""

    num_tied: int
    """Tasks in which several answers were the commonest."""

    num_split: int
    """Tasks in which rollouts of one answer both passed and missed; the larger part
    counts."""


class Passing(Computed):
    """Pass rates at the threshold of `Reading`."""

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
    """None where no answer field was named, or no record has it."""


class UsefulGroups(Computed):
    """Of groups of `group_size` rollouts of a task, how many would teach (GRPO)."""

    group_size: int
    """G: rollouts of one task in a group."""

    useful_share: float | None
    """Expected share of groups whose rewards differ: unbiased, over tasks with G scored
    rollouts or more; None where there is none."""

    mixed_share: float | None
    """The same, of groups with both passes and misses (DAPO's dynamic sampling)."""

    num_tasks: int
    """Tasks that both stand on."""

    plug_in_useful_share: float | None
    """The same as `useful_share` over all tasks with two scored rollouts or more; those
    with fewer than G by the frequencies seen, which claims too much certainty."""

    plug_in_mixed_share: float | None
    """The same as `mixed_share`, likewise."""

    num_plug_in_tasks: int
    """Tasks that these stand on."""

    num_short_tasks: int
    """Of those, tasks with fewer than G: where frequencies stand in."""


class Component(Computed):
    """One of `reward_components` (GDPO), by its own numbers."""

    name: str
    """Its name in the records."""

    num_rollouts: int
    """Scored rollouts that have it: the n of mean and std."""

    mean: float
    """Mean over rollouts."""

    std: float | None
    """Standard deviation over rollouts (ddof 1); None for one."""

    num_tasks: int
    """Tasks with two such rollouts or more."""

    num_signal: int
    """Of those, tasks within which it differs."""

    num_signal_only_here: int
    """Of those, tasks whose total reward does not differ."""


class Band(Computed):
    """How many tasks a difficulty band in use elsewhere would keep."""

    name: str
    """Who uses it."""

    rule: str
    """The rule on the pass rate."""

    num_kept: int
    """Tasks inside, judged by counts."""

    num_tasks: int
    """Tasks judged: those with two scored rollouts or more."""


class Signal(Computed):
    """Whether the tasks can teach: a task whose rewards are all the same cannot."""

    never: int
    """Tasks none of whose rollouts passed."""

    sometimes: int
    """Tasks with passes and misses."""

    always: int
    """Tasks all of whose rollouts passed."""

    undetermined: int
    """Tasks with fewer than two scored rollouts."""

    num_signal: int
    """Tasks whose rewards differ by more than the tolerance."""

    num_zero_signal: int
    """Tasks with two scored rollouts or more whose rewards do not: constant, whatever
    the constant."""

    zero_signal_share: float | None
    """num_zero_signal / (num_signal + num_zero_signal); None where both are 0."""

    num_signal_in_components_only: int
    """Of the zero-signal tasks, those with a component that differs."""

    never_upper_bound: float | None
    """Pass rate that a "never" task may still have: the one-sided bound at the least
    number of rollouts among them; None where there is none."""

    never_rollouts: int | None
    """That least number."""

    groups: tuple[UsefulGroups, ...]
    """For group sizes 4, 8, 16 and 32."""

    components: tuple[Component, ...] = ()
    """In order of name."""

    bands: tuple[Band, ...] = ()
    """Difficulty bands in use elsewhere, and what they would keep."""


class Correlation(Computed):
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


class Subset(Computed):
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


class Length(Computed):
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
    """Of those, how many hold neither text nor a call of a tool."""

    empty: Subset
    """The scored ones without an answer."""

    answered: Subset
    """The scored ones with one."""

    passed: Subset
    """The scored ones that pass."""

    missed: Subset
    """The scored ones that do not."""


class Section(Computed):
    """All numbers of a run, or of one agent."""

    agent: str | None
    """Name of the agent; None for the run as a whole."""

    coverage: Coverage
    """How much there is. Read it first."""

    reward: RewardEstimate
    """The mean reward and how sure it is."""

    passing: Passing
    """Pass rates."""

    signal: Signal
    """Whether the tasks can teach."""

    length: Length
    """Length, truncation, empty answers."""


class Metric(Computed):
    """A numeric column of the records other than the reward."""

    name: str
    """As it stands in the records."""

    num_rollouts: int
    """Collected rollouts that have it and are not masked: its n."""

    mean: float
    """Mean over them."""

    std: float | None
    """Standard deviation (ddof 1); None for one."""

    min: float
    """Smallest."""

    max: float
    """Largest."""

    is_identifier: bool
    """Whether it looks like an id: whole, constant within each task and different
    between tasks. It measures nothing, and stands last."""


class RolloutNumbers(Computed):
    """The rollouts of one task, in columns; all of one length, by rollout index."""

    rollout_index: tuple[int | str, ...]
    """As it stands in the files."""

    state: tuple[RolloutState, ...]
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


class TaskInsight(Computed):
    """One task as one agent ran it."""

    task_index: int | str
    """As it stands in the files."""

    agent: str
    """Name of the agent."""

    label: str | None = None
    """The beginning of the task's last message, on one line; None where not read."""

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
    """Clopper and Pearson's, wider: it covers at least as often as it says."""

    upper_bound: float | None
    """For a task that never passed: pass rate that it may still have, one-sided."""

    lower_bound: float | None
    """For a task that always passed: pass rate that it has at least, one-sided."""

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


class CompletionPoint(Computed):
    """How many rollouts had finished by a moment."""

    seconds: float
    """Since the first rollout started, over all runs of the output."""

    finished: int
    """Rollouts finished by then."""


class Insights(Computed):
    """The whole file."""

    schema_version: int = SCHEMA_VERSION
    """Version of this schema."""

    made_by: str = ""
    """Name and version of what wrote it."""

    output: str = ""
    """Name of the rollouts file."""

    model: str | None = None
    """Name of the model whose rollouts they are, where the servers said it."""

    reading: Reading
    """How rewards were read."""

    run: Section
    """The run as a whole."""

    agents: tuple[Section, ...]
    """One for each agent, in order of name."""

    findings: tuple[Finding, ...]
    """The worst first."""

    metrics: tuple[Metric, ...]
    """Other numeric columns; identifiers last."""

    has_rollouts: bool
    """Whether each task lists its rollouts; left out beyond 1,000,000 of them, which
    the rollouts file and the parquet file still hold."""

    completion: tuple[CompletionPoint, ...] = ()
    """At most 200 points in order of time; empty where no timings are known."""

    tasks: tuple[TaskInsight, ...]
    """One for each (task, agent), in key order, then by agent."""
