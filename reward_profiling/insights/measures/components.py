"""Components of the reward (GDPO): numbers for each of them."""

from collections.abc import Sequence
from itertools import chain

import msgspec

from reward_profiling.insights.table_rows import known_values, scored_rows
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.uncertainty import mean_of, std
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import RolloutTable


class Component(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of one of `reward_components` (GDPO)."""

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
    """Return the components' numbers, and how many tasks differ only there."""
    constant = {
        place
        for place, unit in enumerate(units)
        if unit.n >= MIN_ROLLOUTS and not unit.has_signal
    }
    only: set[int] = set()
    found = []
    for name, column in sorted(table.components.items()):
        own = [known_values(column, scored_rows(table, unit.rows)) for unit in units]
        told = {at: v for at, v in enumerate(own) if len(v) >= MIN_ROLLOUTS}
        differing = {at for at, v in told.items() if max(v) - min(v) > tolerance}
        only |= differing & constant
        values = list(chain.from_iterable(own))
        if values:
            mean = mean_of(values)
            found.append(
                Component(
                    name=name,
                    num_rollouts=len(values),
                    mean=mean,
                    std=std(values, mean),
                    num_tasks=len(told),
                    num_signal=len(differing),
                    num_signal_only_here=len(differing & constant),
                )
            )
    return tuple(found), len(only)
