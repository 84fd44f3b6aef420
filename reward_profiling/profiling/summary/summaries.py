"""Counts and means of a run, each mean with its n.

Gym's files silently drop rewards that are not numbers; here they are counted. Passing
and the clustered standard error follow `statistics.md` D2 and D3.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import eq

import msgspec

from reward_profiling.numerics.number_column import gathered
from reward_profiling.numerics.uncertainty import counted_mean, mean_of, standard_error
from reward_profiling.profiling.gym.profile_files import profile_files_of
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.passes import MIN_ROLLOUTS, pass_rate
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary
from reward_profiling.profiling.summary.run_warnings import warnings_of
from reward_profiling.profiling.tabulation import unscored_reasons

NO_FAILURE_CLASS = "(no class)"


class _AgentCounts(msgspec.Struct):
    """What is counted of one agent while its rows are read."""

    num_tasks: int = 0
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    unscored_reasons: Counter[str] = msgspec.field(default_factory=Counter)
    failed_classes: Counter[str] = msgspec.field(default_factory=Counter)
    means: list[float] = msgspec.field(default_factory=list)
    """Mean reward of each scored task, in key order."""
    passes: Counter[str] = msgspec.field(default_factory=Counter)


def summarize_run(run: MatchedRun, pass_threshold: float) -> RunSummary:
    """Count what was collected of a run, and add warnings."""
    reasons = unscored_reasons(run.records)
    rows = run.matching.rows_with_record
    agents = summarize_agents(
        run.table,
        {rows[record]: reason for record, reason in reasons.items()},
        pass_threshold=pass_threshold,
    )
    files = run.sources.files
    written = [*profile_files_of(files), files.rollout_metrics]
    return add_up(
        str(files.rollouts),
        agents,
        [str(path) for path in written],
        [*warnings_of(run, reasons)],
    )


def summarize_agents(
    table: RolloutTable, reasons: Mapping[int, str], *, pass_threshold: float
) -> list[AgentSummary]:
    """Summarise each agent of the plan, in order of name.

    `reasons[row]` says why an unscored row has no score.
    """
    counts = [_AgentCounts() for _ in table.agents]
    for start, stop in table.spans():
        rows: Sequence[int] = range(start, stop)
        if len(table.agents) == 1:
            _count(counts[0], table, rows, pass_threshold)
            continue
        for agent in sorted(set(table.agent[start:stop])):
            its = [row for row in rows if table.agent[row] == agent]
            _count(counts[agent], table, its, pass_threshold)
    pairs = Counter(zip(table.agent, table.status, strict=True))
    for (agent, status), count in pairs.items():
        counts[agent].statuses[status] = count
    for row, reason in reasons.items():
        counts[table.agent[row]].unscored_reasons[reason] += 1
    for row, name in table.failure_class.items():
        if table.status[row] == RolloutStatus.FAILED:
            counts[table.agent[row]].failed_classes[name or NO_FAILURE_CLASS] += 1
    return list(map(_agent_summary, table.agents, counts))


def _count(
    counts: _AgentCounts, table: RolloutTable, rows: Sequence[int], threshold: float
) -> None:
    """Count one task's rows of one agent."""
    statuses = bytes(gathered(table.status, rows))
    counts.num_tasks += 1
    rewards: Sequence[float] = gathered(table.reward, rows)
    if statuses.count(RolloutStatus.SCORED) < len(statuses):
        scored = map(eq, statuses, repeat(RolloutStatus.SCORED))
        rewards = list(compress(rewards, scored))
    if not rewards:
        return
    counts.means.append(mean_of(rewards))
    if len(rewards) < MIN_ROLLOUTS:
        counts.passes["undetermined"] += 1
        return
    rate = pass_rate(rewards, threshold)
    counts.passes["never" if rate == 0 else "always" if rate == 1 else "some"] += 1


def _agent_summary(name: str, counts: _AgentCounts) -> AgentSummary:
    count = counts.statuses
    failed, missing = count[RolloutStatus.FAILED], count[RolloutStatus.MISSING]
    return AgentSummary(
        agent=name,
        num_tasks=counts.num_tasks,
        planned=count.total(),
        collected=count.total() - failed - missing,
        scored=count[RolloutStatus.SCORED],
        unscored=count[RolloutStatus.UNSCORED],
        masked=count[RolloutStatus.MASKED],
        failed=failed,
        missing=missing,
        unscored_reasons=dict(sorted(counts.unscored_reasons.items())),
        failed_classes=dict(sorted(counts.failed_classes.items())),
        mean_reward=mean_of(counts.means) if counts.means else None,
        standard_error=standard_error(counts.means),
        never_pass=counts.passes["never"],
        sometimes_pass=counts.passes["some"],
        always_pass=counts.passes["always"],
        undetermined=counts.passes["undetermined"],
    )


def add_up(
    output: str,
    agents: Sequence[AgentSummary],
    files: Sequence[str],
    warnings: Sequence[str] = (),
) -> RunSummary:
    """Add the agents up."""

    def total(name: str) -> int:
        return sum(getattr(agent, name) for agent in agents)

    return RunSummary(
        output=output,
        planned=total("planned"),
        collected=total("collected"),
        scored=total("scored"),
        unscored=total("unscored"),
        masked=total("masked"),
        failed=total("failed"),
        missing=total("missing"),
        unscored_reasons=_added(agent.unscored_reasons for agent in agents),
        failed_classes=_added(agent.failed_classes for agent in agents),
        agents=tuple(agents),
        files=tuple(files),
        mean_reward=_overall_mean(agents),
        num_scored_tasks=total("num_scored_tasks"),
        warnings=tuple(warnings),
    )


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return dict(sorted(found.items()))


def _overall_mean(agents: Sequence[AgentSummary]) -> float | None:
    """Return the mean over all agents' scored tasks."""
    known = [
        (agent.mean_reward, agent.num_scored_tasks)
        for agent in agents
        if agent.mean_reward is not None
    ]
    if not known:
        return None
    return counted_mean(known)
