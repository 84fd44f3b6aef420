"""What a run came to, in counts and means that are never shown without their n.

Gym's files drop what is not a number in silence; here it is counted. Passing and the
clustered standard error follow `statistics.md` D2 and D3.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import eq

import msgspec

from reward_profiling.numerics.number_column import gathered
from reward_profiling.numerics.uncertainty import counted_mean, mean_of, standard_error
from reward_profiling.profiling.passes import MIN_ROLLOUTS, num_passing
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable
from reward_profiling.profiling.run_summary import AgentSummary, RunSummary

NO_FAILURE_CLASS = "(no class)"


class _Tally(msgspec.Struct):
    """Counts of one agent while its rows are read."""

    num_tasks: int = 0
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    unscored_reasons: Counter[str] = msgspec.field(default_factory=Counter)
    failed_classes: Counter[str] = msgspec.field(default_factory=Counter)
    means: list[float] = msgspec.field(default_factory=list)
    """Mean reward of each scored task, in key order."""
    passes: Counter[str] = msgspec.field(default_factory=Counter)


def summarize(
    table: RolloutTable, reasons: Mapping[int, str], *, pass_threshold: float
) -> list[AgentSummary]:
    """Summarise each agent of the plan, in order of name.

    `reasons[row]` says why an unscored row has no score.
    """
    tallies = [_Tally() for _ in table.agents]
    for start, stop in table.spans():
        rows: Sequence[int] = range(start, stop)
        if len(table.agents) == 1:
            _count(tallies[0], table, rows, pass_threshold)
            continue
        for agent in sorted(set(table.agent[start:stop])):
            its = [row for row in rows if table.agent[row] == agent]
            _count(tallies[agent], table, its, pass_threshold)
    pairs = Counter(zip(table.agent, table.status, strict=True))
    for (agent, status), count in pairs.items():
        tallies[agent].statuses[status] = count
    for row, reason in reasons.items():
        tallies[table.agent[row]].unscored_reasons[reason] += 1
    for row, name in table.failure_class.items():
        if table.status[row] == RolloutStatus.FAILED:
            tallies[table.agent[row]].failed_classes[name or NO_FAILURE_CLASS] += 1
    return [
        _agent_counts(name, tally)
        for name, tally in zip(table.agents, tallies, strict=True)
    ]


def _count(
    tally: _Tally, table: RolloutTable, rows: Sequence[int], threshold: float
) -> None:
    """Count one task's rows of one agent."""
    statuses = bytes(gathered(table.status, rows))
    tally.num_tasks += 1
    rewards: Sequence[float] = gathered(table.reward, rows)
    if statuses.count(RolloutStatus.SCORED) < len(statuses):
        scored = map(eq, statuses, repeat(RolloutStatus.SCORED))
        rewards = list(compress(rewards, scored))
    if not rewards:
        return
    tally.means.append(mean_of(rewards))
    if len(rewards) < MIN_ROLLOUTS:
        tally.passes["undetermined"] += 1
        return
    rate = pass_rate(rewards, threshold)
    tally.passes["never" if rate == 0 else "always" if rate == 1 else "some"] += 1


def _agent_counts(name: str, tally: _Tally) -> AgentSummary:
    count = tally.statuses
    failed, missing = count[RolloutStatus.FAILED], count[RolloutStatus.MISSING]
    return AgentSummary(
        agent=name,
        num_tasks=tally.num_tasks,
        planned=count.total(),
        collected=count.total() - failed - missing,
        scored=count[RolloutStatus.SCORED],
        unscored=count[RolloutStatus.UNSCORED],
        masked=count[RolloutStatus.MASKED],
        failed=failed,
        missing=missing,
        unscored_reasons=dict(sorted(tally.unscored_reasons.items())),
        failed_classes=dict(sorted(tally.failed_classes.items())),
        mean_reward=mean_of(tally.means) if tally.means else None,
        standard_error=standard_error(tally.means),
        never_pass=tally.passes["never"],
        sometimes_pass=tally.passes["some"],
        always_pass=tally.passes["always"],
        undetermined=tally.passes["undetermined"],
    )


def pass_rate(rewards: Sequence[float], threshold: float) -> float:
    """Return the share of rewards at or above `threshold`, in 0..1; n >= 1."""
    return num_passing(rewards, threshold) / len(rewards)


def run_counts(
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
