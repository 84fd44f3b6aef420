"""Rows of a table: which of them count, and the values of its columns there."""

from collections.abc import Iterable, Sequence

from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable


def scored_rows(table: RolloutTable, rows: Iterable[int]) -> list[int]:
    """Return the rows whose reward counts."""
    status, scored = table.status, RolloutStatus.SCORED
    return [row for row in rows if status[row] == scored]


def scored_rewards(table: RolloutTable, rows: Iterable[int]) -> list[float]:
    """Return the rewards that count, in the order of the rows."""
    return [table.reward[row] for row in scored_rows(table, rows)]


def collected_rows(table: RolloutTable, rows: Iterable[int]) -> list[int]:
    """Return the rows that have a record."""
    status, last = table.status, RolloutStatus.MASKED
    return [row for row in rows if status[row] <= last]


def known_values(column: Sequence[float], rows: Iterable[int]) -> list[float]:
    """Return a column's values in some rows, without NaN."""
    # Only NaN differs from itself. Comparing is faster than calling `math.isnan`.
    return [value for row in rows if (value := column[row]) == value]
