"""Rows of a table: which of them count, and what its columns hold there."""

from collections.abc import Iterable, Sequence

from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable


def scored_rows(table: RolloutTable, rows: Iterable[int]) -> list[int]:
    """Return those of the rows whose reward counts."""
    status, scored = table.status, RolloutStatus.SCORED
    return [row for row in rows if status[row] == scored]


def scored_rewards(table: RolloutTable, rows: Iterable[int]) -> list[float]:
    """Return the rewards of those of the rows whose reward counts."""
    return [table.reward[row] for row in scored_rows(table, rows)]


def collected_rows(table: RolloutTable, rows: Iterable[int]) -> list[int]:
    """Return those of the rows that have a record."""
    status, last = table.status, RolloutStatus.MASKED
    return [row for row in rows if status[row] <= last]


def known_values(column: Sequence[float], rows: Iterable[int]) -> list[float]:
    """Return what a column holds in some rows; rows where it is NaN are left out."""
    # Only NaN differs from itself; to compare is faster than to call `math.isnan`.
    return [value for row in rows if (value := column[row]) == value]
