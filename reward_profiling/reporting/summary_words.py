"""Summaries in words: sentences, and tables for the terminal and Prefect's pages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reward_profiling.numerics.figures import figure, is_residue, measured
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary

if TYPE_CHECKING:  # these take longer to import than a small profile takes
    from reward_profiling.collecting.aggregation.aggregate_summary import (
        AggregateSummary,
    )
    from reward_profiling.collecting.progress import Progress, RunningMean
    from reward_profiling.planning.plan_summary import PlanSummary

_STANDS_OUT = 4.0
"""How many times the median a rollout must take to be named."""

_SHOWN_KINDS = 4
"""Reasons and failure classes that one line names."""

COLUMNS = (
    "agent", "rollouts", "scored", "mean reward", "tasks", "never", "some", "always",
)  # fmt: skip
LEGEND = (
    "mean reward: mean over the scored tasks ± its standard error; never, some, always:"
    " how many tasks with two rollouts or more pass never, sometimes, always"
)


def planned(summary: "PlanSummary") -> str:
    """Say what a materialization planned."""
    said = f"{summary.num_rollouts} rollouts of {summary.num_tasks} tasks planned"
    if summary.num_new < summary.num_rollouts:
        said += f", {summary.num_new} of them new"
    return said


def zeros(summary: "AggregateSummary") -> str | None:
    """Say which rollouts without a reward the servers' metrics count as zero."""
    counts = (
        (summary.num_failures_as_zero, "failed"),
        (summary.num_missing_as_zero, "missing"),
    )
    parts = [f"{count} {word} rollouts" for count, word in counts if count]
    return f"the metrics count {' and '.join(parts)} as zero" if parts else None


def headline(summary: RunSummary) -> str:
    """Return the first sentence: what was collected of the plan, what is missing."""
    said = f"{summary.collected} of {summary.planned} rollouts collected"
    lacking = [
        f"{count} {word}{_by_kind(kinds)}"
        for count, word, kinds in (
            (summary.failed, "failed", summary.failed_classes),
            (summary.missing, "missing", {}),
            (summary.masked, "masked", {}),
            (summary.unscored, "without a usable reward", summary.unscored_reasons),
        )
        if count
    ]
    if lacking:
        said = f"{said}: {', '.join(lacking)}"
    if summary.mean_reward is None:
        return said
    count = summary.num_scored_tasks
    tasks = f"{count} task" + "s" * (count != 1)
    return f"{said}; mean reward {figure(summary.mean_reward)} (n={tasks})"


def _uncounted(agent: AgentSummary) -> list[str]:
    parts = []
    if agent.masked:
        parts.append(f"{agent.masked} masked")
    if agent.unscored:
        kinds = _by_kind(agent.unscored_reasons)
        parts.append(f"{agent.unscored} without a usable reward{kinds}")
    return parts


def _by_kind(kinds: Mapping[str, int]) -> str:
    """Return how many there are of each kind, the most first."""
    if not kinds:
        return ""
    ordered = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    named = [f"{count} {name}" for name, count in ordered[:_SHOWN_KINDS]]
    left = sum(count for _, count in ordered[_SHOWN_KINDS:])
    return f" ({', '.join(named)}{f', {left} of others' if left else ''})"


def mean_with_error(agent: AgentSummary) -> str:
    """Return a mean with its standard error, or say that it is unknown.

    An error of 0.0, or none, is not shown: "± 0" would claim a certainty that a few
    equal values do not give.
    """
    if agent.mean_reward is None:
        return "unknown"
    return figure(agent.mean_reward) + _error(agent.standard_error, agent.mean_reward)


def _error(error: float | None, mean: float) -> str:
    if error is None or is_residue(error, mean):
        return ""
    return f" ± {figure(error)}"


def agent_cells(agent: AgentSummary) -> tuple[str, ...]:
    """Return an agent's row, in the order of `COLUMNS`; tasks are the mean's n."""
    tasks = str(agent.num_scored_tasks)
    if agent.num_scored_tasks < agent.num_tasks:
        tasks += f" of {agent.num_tasks}"
    return (
        agent.agent,
        f"{agent.collected}/{agent.planned}",
        str(agent.scored),
        mean_with_error(agent),
        tasks,
        str(agent.never_pass),
        str(agent.sometimes_pass),
        str(agent.always_pass),
    )


def progress_line(progress: "Progress", now: float, *, is_over: bool = False) -> str:
    """Return the live numbers of a collection in one line; `now` in seconds.

    One that is over, whole or not, has no time left.
    """
    label = f"{progress.name}: " if progress.name else ""
    done = f"{label}{progress.done}/{progress.planned} done"
    parts = [done, mean_so_far(progress)]
    counts = (
        (progress.found, "from earlier runs"),
        *((count, name) for name, count in sorted(progress.failures.items())),
        (progress.given_up, "given up"),
        (len(progress.in_flight), "in flight"),
        (progress.waiting, "waiting for their server"),
        (progress.retries, "retries"),
        (progress.replies_lost, "replies lost"),
    )
    parts += [f"{count} {words}" for count, words in counts if count]
    if rate := progress.rate(now):
        parts.append(f"{measured(rate)}/s")
    left = progress.seconds_left(now)
    if left is not None and not is_over:
        parts.append(f"{duration(left)} left")
    if is_over and progress.left:
        parts.append(f"ended with {progress.left} still owed")
    return ", ".join(parts)


def slowest_rollouts(progress: "Progress") -> str | None:
    """Name the slowest rollouts of a run if they stand out; None otherwise.

    A few rollouts that take ten times the median often take most of a run's time.
    """
    if not progress.slowest or not progress.durations:
        return None
    usual = sorted(progress.durations)[len(progress.durations) // 2]
    slow = [(s, name) for s, name in progress.slowest if s > _STANDS_OUT * usual]
    if not slow:
        return None
    named = ", ".join(f"{name} ({measured(seconds)} s)" for seconds, name in slow)
    return f"slowest rollouts, where the median took {measured(usual)} s: {named}"


def mean_so_far(progress: "Progress") -> str:
    """Return the mean reward of the records so far, with its n."""
    return running_mean(progress.rewards) or "no reward yet"


def running_mean(rewards: "RunningMean") -> str | None:
    """Return a mean with its error and its n; None when there is none yet."""
    if rewards.mean is None:
        return None
    error = _error(rewards.standard_error, rewards.mean)
    return f"mean reward {figure(rewards.mean)}{error} (n={rewards.count})"


def duration(seconds: float) -> str:
    """Return a duration as h:mm:ss, or m:ss below an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def notices(summary: RunSummary) -> list[str]:
    """Say what a person should check before trusting the numbers."""
    found = [
        f"{agent.agent}: all {agent.num_scored_tasks} tasks {word} pass, so passing"
        " alone cannot teach"
        for agent in summary.agents
        for count, word in ((agent.never_pass, "never"), (agent.always_pass, "always"))
        if count == agent.num_tasks > 1 and agent.scored >= MIN_ROLLOUTS * count
    ]
    found += [
        f"{agent.agent}: {agent.collected} of {agent.planned} rollouts collected"
        for agent in summary.agents
        if agent.collected < agent.planned
    ]
    found += [
        f"{agent.agent}: {agent.scored} of {agent.collected} records count:"
        f" {', '.join(_uncounted(agent))}"
        for agent in summary.agents
        if agent.scored < agent.collected
    ]
    if summary.stopped:
        found.insert(0, f"the collection ended early: {summary.stopped}")
    return [*found, *summary.warnings]
