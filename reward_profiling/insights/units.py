"""The units of statistics: the numbers of each (task, agent) pair of a run.

A unit holds the positions of its rows and their statistics, not the rows: a few
hundred bytes, however large its rollouts are.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reward_profiling.insights.table_rows import scored_rewards
from reward_profiling.numerics.uncertainty import mean_of, variance
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import num_passing
from reward_profiling.profiling.rollout_table import RolloutTable

Signature = tuple[int, ...]
"""How often each distinct reward of a task occurs, ascending."""

PassCounts = Mapping[tuple[int, int], int]
"""How many tasks have n scored rollouts of which c pass, by (n, c)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One task as one agent ran it."""

    task: int
    """Position in `RolloutTable.tasks`."""
    agent: int
    """Position in `RolloutTable.agents`."""
    rows: Sequence[int]
    """Its rows in the table, ascending: by rollout index."""
    n: int
    """Scored rollouts."""
    c: int
    """Of those, the ones that pass."""
    mean: float
    """Mean reward; NaN where n is 0."""
    variance: float | None
    """Sample variance of the rewards; None below two."""
    signature: Signature
    """How often each distinct reward occurs."""

    @property
    def has_signal(self) -> bool:
        """Whether its rewards differ by more than the tolerance."""
        return len(self.signature) > 1


def units_of(table: RolloutTable, options: ProfileOptions) -> list[Unit]:
    """Return every (task, agent) pair of the table, in key order, then by agent."""
    return [
        _unit(table, rows, options)
        for start, stop in table.spans()
        for rows in _rows_by_agent(table, start, stop)
    ]


def _rows_by_agent(
    table: RolloutTable, start: int, stop: int
) -> Iterator[Sequence[int]]:
    agents = table.agent[start:stop]
    # Nearly every task has one agent: a range costs no memory, a list of rows does.
    if agents.count(agents[0]) == len(agents):
        yield range(start, stop)
        return
    for agent in sorted(set(agents)):
        yield [row for row in range(start, stop) if table.agent[row] == agent]


def _unit(table: RolloutTable, rows: Sequence[int], options: ProfileOptions) -> Unit:
    rewards = scored_rewards(table, rows)
    mean = mean_of(rewards) if rewards else math.nan
    threshold = options.pass_threshold
    return Unit(
        task=table.task[rows[0]],
        agent=table.agent[rows[0]],
        rows=rows,
        n=len(rewards),
        c=num_passing(rewards, threshold),
        mean=mean,
        variance=variance(rewards, mean),
        signature=reward_signature(rewards, options.signal_tolerance),
    )


def reward_signature(rewards: Sequence[float], tolerance: float) -> Signature:
    """Return how often each distinct reward occurs; `()` for none.

    A reward within the tolerance of the smallest one of a group belongs to the group.
    """
    counts: list[int] = []
    first = -math.inf
    for reward in sorted(rewards):
        if not counts or reward - first > tolerance:
            counts.append(0)
            first = reward
        counts[-1] += 1
    return tuple(sorted(counts))


def pass_counts(units: Iterable[Unit]) -> Counter[tuple[int, int]]:
    """Count the units that have a scored rollout by (n, c)."""
    return Counter((unit.n, unit.c) for unit in units if unit.n)
