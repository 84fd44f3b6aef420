"""The check for a collapse: a point after which nearly every rollout failed."""

from collections.abc import Collection, Sequence

from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.checks.coverage_checks import causes
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.passes import is_pass
from reward_profiling.profiling.rollout_table import (
    NO,
    UNKNOWN,
    YES,
    RolloutStatus,
    RolloutTable,
)

_LEAST, _LEAST_SHARE = 5, 0.1
"""The least number of rollouts on either side of the point, and their least share."""
_TAIL = 0.9
"""After the point, at least this share of the rollouts fails."""
_HEAD = 0.2
"""Before the point, at most this share fails."""


def environment_died(agent: AgentPart) -> Finding | None:
    """Find a point after which nearly every rollout failed.

    The check tries both orders in which rollouts are dispatched: task by task, and
    repeat by repeat.
    """
    status = agent.table.status
    tried = sorted(
        row
        for unit in agent.units
        for row in unit.rows
        if status[row] != RolloutStatus.MISSING
    )
    empty = agent.table.empty
    # If no record of the agent holds a reply, a missing one is no sign of trouble.
    lacking = {YES, UNKNOWN} if any(empty[r] == NO for r in tried) else {YES}
    troubles = {row: _is_trouble(agent, row, lacking) for row in tried}
    if sum(troubles.values()) < _TAIL * _least(len(tried)):
        return None
    by_repeat = sorted(tried, key=lambda row: (_repeat(agent.table, row), row))
    for order in (tried, by_repeat):
        split = _collapse([troubles[row] for row in order])
        if split is not None:
            return _death(agent, len(tried), split)
    return None


def _least(count: int) -> float:
    """Return how many rollouts must lie on either side of such a point."""
    return max(_LEAST, _LEAST_SHARE * count)


def _repeat(table: RolloutTable, row: int) -> tuple[bool, int | str]:
    index = table.rollout[row]
    return isinstance(index, str), index


def _is_trouble(agent: AgentPart, row: int, lacking: Collection[int]) -> bool:
    """Return whether a rollout ended without a usable answer."""
    table = agent.table
    if table.status[row] != RolloutStatus.SCORED:
        return True
    is_miss = not is_pass(table.reward[row], agent.options.pass_threshold)
    return table.empty[row] in lacking and is_miss


def _collapse(troubles: Sequence[bool]) -> int | None:
    """Return the place of the sharpest turn from success to failure, or None."""
    # A running count keeps this linear: runs have up to a million rollouts.
    total, before, best = sum(troubles), 0, None
    least = _least(len(troubles))
    widest = 0.0
    for place in range(1, len(troubles)):
        before += troubles[place - 1]
        head, tail = before / place, (total - before) / (len(troubles) - place)
        is_split = place >= least and len(troubles) - place >= least
        is_death = is_split and head <= _HEAD and tail >= _TAIL
        if is_death and tail - head > widest:
            best, widest = place, tail - head
    return best


def _death(agent: AgentPart, tried: int, split: int) -> Finding:
    return agent.finding(
        "environment_died",
        "critical",
        f"the first {split} rollouts went well, but nearly all of the"
        f" {tried - split} after them failed"
        f" ({causes(agent) or 'empty answers'}): the environment, or a service that it"
        " needs, seems to have died midway",
        "read the server's log at that point; the later rollouts do not measure the"
        " model",
        before=split,
        after=tried - split,
    )
