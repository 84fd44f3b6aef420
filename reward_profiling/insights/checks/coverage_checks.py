"""Checks of coverage: which part of a plan has no reward, and why.

Each looks at one agent and returns a finding, or None. With too little data: None.
"""

from collections import Counter
from collections.abc import Sequence

from reward_profiling import wire
from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.table_rows import scored_rows
from reward_profiling.numerics.figures import figure, percent
from reward_profiling.numerics.uncertainty import mean_of
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable

_LOW_COVERAGE = 0.95
_HALF = 0.5
_UNEQUAL = 2
_SHARE = 0.1
"""From this share of the records on, the check reports them or calls them critical."""


def causes(agent: AgentPart) -> str:
    """Return why rollouts have no reward, the most frequent reason first."""
    coverage = agent.section.coverage
    counts = Counter(
        {
            "missing": coverage.missing,
            _masked_word(agent): coverage.masked,
            "without a usable reward": coverage.unscored,
        }
    )
    for name, count in coverage.failures_by_class.items():
        counts[f"failed ({name})"] += count
    told = [f"{count} {name}" for name, count in counts.most_common() if count]
    return ", ".join(told)


def _masked_word(agent: AgentPart) -> str:
    return "masked or empty" if agent.options.leave_out_empty else "masked"


def _remedy(agent: AgentPart) -> str:
    """Return what helps against what is lacking, and nothing that does not."""
    coverage = agent.section.coverage
    parts = []
    if coverage.failed:
        parts.append("read the failures file and the agent's log")
    if coverage.unscored or coverage.masked:
        parts.append(
            "look at the records without a score, and at the verifier that made them;"
            " asking again does not change them"
        )
    if coverage.failed or coverage.missing:
        parts.append("run the same command again: it collects what is owed")
    return "; then ".join(parts) or "look at the records without a score"


def nothing_scored(agent: AgentPart) -> Finding:
    """Say that no rollout of the agent has a reward."""
    coverage = agent.section.coverage
    return agent.finding(
        "nothing_scored",
        "critical",
        f"none of {coverage.planned} planned rollouts has a reward: {causes(agent)}",
        _remedy(agent),
        planned=coverage.planned,
        masked=coverage.masked,
        unscored=coverage.unscored,
        failed=coverage.failed,
        missing=coverage.missing,
    )


def low_coverage(agent: AgentPart) -> Finding | None:
    """Find that some of the planned rollouts have no reward."""
    coverage = agent.section.coverage
    share = coverage.scored_share or 0.0
    if share >= _LOW_COVERAGE:
        return None
    untold = coverage.num_tasks - coverage.num_scored_tasks
    have = "1 task has" if untold == 1 else f"{untold} tasks have"
    tasks = f"; {have} none at all" if untold else ""
    return agent.finding(
        "low_coverage",
        "critical" if share < _HALF else "warning",
        f"{coverage.scored} of {coverage.planned} planned rollouts"
        f" ({percent(share)}) have a reward: {causes(agent)}{tasks}",
        f"every number below is over the scored rollouts only; {_remedy(agent)}",
        planned=coverage.planned,
        scored=coverage.scored,
        tasks_without_reward=untold,
    )


def context_exceeded(agent: AgentPart) -> Finding | None:
    """Find rollouts that failed because they outgrew the model's context."""
    classes, status = agent.table.failure_class, agent.table.status
    failed = [
        sum(
            classes.get(row) == wire.CONTEXT_LENGTH
            for row in unit.rows
            if status[row] == RolloutStatus.FAILED
        )
        for unit in agent.units
    ]
    tasks = sum(map(bool, failed))
    if not tasks:
        return None
    share = tasks / len(agent.units)
    of_tasks = f"{tasks} of {len(agent.units)} tasks ({percent(share)})"
    rollouts = "1 rollout" if sum(failed) == 1 else f"{sum(failed)} rollouts"
    return agent.finding(
        "context_exceeded",
        "warning" if share >= _SHARE else "note",
        f"{rollouts} of {of_tasks} failed because the request is longer than the"
        " model's context; none counts as 0",
        "serve the model with a longer context, shorten these prompts, or leave the"
        " tasks out: the mean says nothing of them",
        rollouts=sum(failed),
        tasks=tasks,
        planned_tasks=len(agent.units),
    )


def mostly_masked(agent: AgentPart) -> Finding | None:
    """Find that the server masked many of the records."""
    coverage = agent.section.coverage
    masked = coverage.masked
    if agent.options.leave_out_empty:  # `empty_answers` reports those already
        masked = max(0, masked - agent.section.length.num_empty)
    share = masked / coverage.collected if coverage.collected else 0.0
    if share < _SHARE:
        return None
    return agent.finding(
        "mostly_masked",
        "critical" if share >= _HALF else "warning",
        f"{masked} of {coverage.collected} records ({percent(share)}) are"
        " masked: no number counts their reward",
        "the environment gave up on these rollouts (a reset, a sandbox, a judge): read"
        " its log before you trust the mean of the rest",
        masked=masked,
        collected=coverage.collected,
    )


def unscored_rewards(agent: AgentPart) -> Finding | None:
    """Find records whose reward is not a finite number."""
    coverage = agent.section.coverage
    if not coverage.unscored:
        return None
    share = coverage.unscored / coverage.collected
    return agent.finding(
        "unscored_rewards",
        "critical" if share >= _SHARE else "warning",
        f"{coverage.unscored} of {coverage.collected} records have no usable reward"
        " (missing, null, text or not finite)",
        "let the verifier mask the sample or answer with an error when it fails; the"
        " mean leaves these records out",
        unscored=coverage.unscored,
        collected=coverage.collected,
    )


def scored_errors(agent: AgentPart) -> Finding | None:
    """Find rewards that stand beside an error: of a judge or a tool that failed."""
    table = agent.table
    beside = [
        table.reward[row]
        for unit in agent.units
        for row in scored_rows(table, unit.rows)
        if table.has_error[row]
    ]
    if not beside:
        return None
    scored, with_error = agent.section.coverage.scored, len(beside)
    share = with_error / scored
    # Where their rewards differ, `error` may be a column of the dataset.
    is_broken = share >= _SHARE and len(set(beside)) == 1
    means = [
        mean_of(rewards)
        for unit in agent.units
        if (rewards := _without_error(table, unit.rows))
    ]
    mean = mean_of(means) if means else None
    without = "none is left without them"
    if mean is not None:
        without = f"without them the mean is {figure(mean)} (n={len(means)} tasks)"
    return agent.finding(
        "scored_errors",
        "critical" if is_broken else "warning",
        f"{with_error} of {scored} scored records ({percent(share)}) hold an error"
        f" beside their reward; {without}",
        "read the member `error` of these records: a judge or a tool may have failed."
        " Have the verifier mask the sample or answer with an error then",
        with_error=with_error,
        scored=scored,
        mean_without=mean,
        tasks_without=len(means),
    )


def _without_error(table: RolloutTable, rows: Sequence[int]) -> list[float]:
    return [
        table.reward[row]
        for row in scored_rows(table, rows)
        if not table.has_error[row]
    ]


def too_few_repeats(agent: AgentPart) -> Finding | None:
    """Find that most tasks have a single scored rollout."""
    signal = agent.section.signal
    scored = agent.section.coverage.num_scored_tasks
    untold = sum(unit.n == 1 for unit in agent.units)
    if untold <= _HALF * scored:
        return None
    return agent.finding(
        "too_few_repeats",
        "note",
        f"{untold} of {scored} scored tasks have a single rollout, which does not show"
        " whether a task can teach",
        "plan more repeats: the same command with a larger --num-repeats keeps every"
        " record",
        tasks=scored,
        undetermined=signal.undetermined,
    )


def unequal_repeats(agent: AgentPart) -> Finding | None:
    """Find that some tasks were planned twice as often as others, or more.

    When repeats depend on earlier results, tasks with many repeats are those that
    stayed undecided longest. They do not represent the other tasks.
    """
    repeats = [len(unit.rows) for unit in agent.units]
    least, most = min(repeats), max(repeats)
    if most < _UNEQUAL * least:
        return None
    return agent.finding(
        "unequal_repeats",
        "note",
        f"tasks have from {least} to {most} planned rollouts: numbers for more than"
        f" {'one try' if least == 1 else f'{least} tries'} cover only the tasks with"
        " the most repeats, which may differ from the rest",
        "use adaptive repeats to choose tasks; plan equal repeats to measure pass@k or"
        " a mean",
        least=least,
        most=most,
        tasks=len(repeats),
    )
