"""Components of the reward (GDPO): each by its own numbers."""

from collections.abc import Sequence

import msgspec

from reward_profiling.insights.table_rows import known_values, scored_rows
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.uncertainty import mean_of, std
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import RolloutTable


class Component(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def components_of(
    table: RolloutTable, units: Sequence[Unit], tolerance: float
) -> tuple[tuple[Component, ...], int]:
    """Return the components' numbers, and in how many tasks only they differ."""
    only: set[int] = set()
    found = []
    for name, column in sorted(table.components.items()):
        values: list[float] = []
        tasks = signal = here = 0
        for place, unit in enumerate(units):
            own = known_values(column, scored_rows(table, unit.rows))
            values += own
            if len(own) < MIN_ROLLOUTS:
                continue
            differs = max(own) - min(own) > tolerance
            is_only = differs and unit.n >= MIN_ROLLOUTS and not unit.has_signal
            tasks += 1
            signal += differs
            here += is_only
            only |= {place} if is_only else set()
        if values:
            mean = mean_of(values)
            found.append(
                Component(
                    name=name,
                    num_rollouts=len(values),
                    mean=mean,
                    std=std(values, mean),
                    num_tasks=tasks,
                    num_signal=signal,
                    num_signal_only_here=here,
                )
            )
    return tuple(found), len(only)
