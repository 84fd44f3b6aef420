"""The units of statistics: each (task, agent) pair of a run, by its numbers.

A unit holds where its rows are and what they come to, not the rows; it is a few
hundred bytes, whatever its rollouts hold.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reward_profiling.insights.learning_signal import Signature, signature_of
from reward_profiling.numerics.uncertainty import mean_of, variance
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import num_passing
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable


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
        signature=signature_of(rewards, options.signal_tolerance),
    )


def scored_rows(table: RolloutTable, rows: Sequence[int]) -> list[int]:
    """Return those of the rows whose reward counts."""
    status, scored = table.status, RolloutStatus.SCORED
    return [row for row in rows if status[row] == scored]


def scored_rewards(table: RolloutTable, rows: Sequence[int]) -> list[float]:
    """Return the rewards of those of the rows whose reward counts."""
    return [table.reward[row] for row in scored_rows(table, rows)]
