"""What a run came to, in counts and means that are never shown without their n.

Gym's files drop what is not a number in silence; here it is counted. Passing and the
clustered standard error follow `statistics.md` D2 and D3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tasks.core import wire
from tasks.core.models import AgentSummary, RunSummary, ShardSummary
from tasks.core.progress import is_reward
from tasks.core.records import PlannedRow, Record, RolloutKey

PASS_TOLERANCE = 1e-9
_NO_AGENT = "(no agent)"


@dataclass(slots=True)
class _Tally:
    """Counts of one agent while its rows are read."""

    tasks: set[object] = field(default_factory=set)
    planned: int = 0
    collected: int = 0
    masked: int = 0
    failed: int = 0
    missing: int = 0
    rewards: dict[object, list[float]] = field(default_factory=dict)
    """Rewards by task, in key order."""


def summarize(
    rows: Sequence[PlannedRow],
    records: Iterable[Record],
    failed: Mapping[RolloutKey, int],
    *,
    pass_threshold: float,
) -> list[AgentSummary]:
    """Summarise each agent of the plan, in order of name.

    `failed[key]` counts the recorded failures of a rollout; one that was collected in
    the end is not a failure.
    """
    by_key = {record.key: record for record in records}
    tallies: dict[str, _Tally] = {}
    for row in sorted(rows, key=lambda row: [(isinstance(i, str), i) for i in row.key]):
        tally = tallies.setdefault(row.agent or row.run_key or _NO_AGENT, _Tally())
        _count(tally, row, by_key.get(row.key), failed.get(row.key, 0))
    return [
        _agent_summary(name, tally, pass_threshold)
        for name, tally in sorted(tallies.items())
    ]


def _count(tally: _Tally, row: PlannedRow, record: Record | None, fails: int) -> None:
    tally.tasks.add(row.key[0])
    tally.planned += 1
    if record is None:
        tally.failed += bool(fails)
        tally.missing += not fails
        return
    tally.collected += 1
    tally.masked += record.masked
    reward = record.info.get(wire.REWARD)
    if not record.masked and is_reward(reward):
        tally.rewards.setdefault(row.key[0], []).append(float(reward or 0.0))


def _agent_summary(name: str, tally: _Tally, threshold: float) -> AgentSummary:
    means = [_mean(rewards) for rewards in tally.rewards.values()]
    scored = sum(len(rewards) for rewards in tally.rewards.values())
    rates = [pass_rate(rewards, threshold) for rewards in tally.rewards.values()]
    return AgentSummary(
        agent=name,
        num_tasks=len(tally.tasks),
        planned=tally.planned,
        collected=tally.collected,
        scored=scored,
        unscored=tally.collected - tally.masked - scored,
        masked=tally.masked,
        failed=tally.failed,
        missing=tally.missing,
        mean_reward=_mean(means) if means else None,
        standard_error=standard_error(means),
        never_pass=sum(rate == 0 for rate in rates),
        sometimes_pass=sum(0 < rate < 1 for rate in rates),
        always_pass=sum(rate == 1 for rate in rates),
    )


def pass_rate(rewards: Sequence[float], threshold: float) -> float:
    """Return the share of rewards at or above `threshold`, in 0..1; n >= 1."""
    passed = sum(reward >= threshold - PASS_TOLERANCE for reward in rewards)
    return passed / len(rewards)


def standard_error(task_means: Sequence[float]) -> float | None:
    """Return the standard error of the mean over tasks; None below two tasks.

    Rollouts of one task are not independent, so that tasks are the sample
    (Miller 2024, arXiv 2411.00640, with the C/(C - 1) correction).
    """
    count = len(task_means)
    if count < 2:  # noqa: PLR2004 - one task has no spread
        return None
    mean = _mean(task_means)
    # A length, since the squares themselves may not fit in a float.
    spread = math.hypot(*(value - mean for value in task_means))
    return spread / math.sqrt((count - 1) * count)


def _mean(values: Sequence[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum does not fit in a float, the mean does
        return math.fsum(value / len(values) for value in values)


def run_summary(
    output: str, agents: Sequence[AgentSummary], files: Sequence[str]
) -> RunSummary:
    """Add the agents up."""
    return RunSummary(
        output=output,
        planned=sum(agent.planned for agent in agents),
        collected=sum(agent.collected for agent in agents),
        scored=sum(agent.scored for agent in agents),
        unscored=sum(agent.unscored for agent in agents),
        masked=sum(agent.masked for agent in agents),
        failed=sum(agent.failed for agent in agents),
        missing=sum(agent.missing for agent in agents),
        agents=tuple(agents),
        files=tuple(files),
        mean_reward=_overall_mean(agents),
        num_scored_tasks=sum(agent.num_scored_tasks for agent in agents),
    )


def _overall_mean(agents: Sequence[AgentSummary]) -> float | None:
    """Return the mean over all agents' scored tasks."""
    known = [
        (agent.mean_reward, agent.num_scored_tasks)
        for agent in agents
        if agent.mean_reward is not None
    ]
    if not known:
        return None
    return math.fsum(m * n for m, n in known) / sum(n for _, n in known)


def with_stops(summary: RunSummary, shards: Sequence[ShardSummary]) -> RunSummary:
    """Add why shards ended early, each reason once."""
    reasons = list(dict.fromkeys(shard.stopped for shard in shards if shard.stopped))
    return summary.model_copy(
        update={
            "stopped": "; ".join(reasons) or None,
            "is_failed": any(shard.is_failed for shard in shards),
        }
    )
