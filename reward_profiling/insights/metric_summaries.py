"""The numeric columns of the records other than the reward ("metrics" in the file)."""

from collections.abc import Iterator, Sequence

import msgspec

from reward_profiling.insights.table_rows import known_values
from reward_profiling.insights.units import Unit
from reward_profiling.numerics.uncertainty import mean_of, std
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable

_MOSTLY = 0.9
_FEW = 2
"""So few values do not tell an identifier from a measurement."""
_SEED = "seed"
_ID_WORDS = frozenset({"id", "idx", "index", "uid"})
"""Last words of column names that denote an identifier."""


class MetricSummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A numeric column of the records other than the reward."""

    name: str
    """The name that the records use."""

    num_rollouts: int
    """Unmasked records that have it: the n of the numbers below."""

    mean: float
    """Mean over them."""

    std: float | None
    """Standard deviation (ddof 1); None for one."""

    min: float
    """Smallest."""

    max: float
    """Largest."""

    is_identifier: bool
    """Whether it looks like an identifier: an integer, constant within each task and
    different between tasks. Identifiers come last."""


def summarize_metrics(
    table: RolloutTable, units: Sequence[Unit]
) -> tuple[MetricSummary, ...]:
    """Return a summary of each column that has a value, identifiers last."""
    found = _summaries(table, units)
    return tuple(sorted(found, key=lambda metric: metric.is_identifier))


def _summaries(table: RolloutTable, units: Sequence[Unit]) -> Iterator[MetricSummary]:
    last = RolloutStatus.UNSCORED
    rows = [row for row, status in enumerate(table.status) if status <= last]
    for name, column in table.metrics.items():
        values = known_values(column, rows)
        if not values:
            continue
        mean = mean_of(values)
        yield MetricSummary(
            name=name,
            num_rollouts=len(values),
            mean=mean,
            std=std(values, mean),
            min=min(values),
            max=max(values),
            is_identifier=_is_identifier(name, column, units, values),
        )


def _is_identifier(
    name: str, column: Sequence[float], units: Sequence[Unit], values: Sequence[float]
) -> bool:
    """Return whether a column identifies its task: an integer, one distinct per task.

    If its name says so, too, a few tasks are enough.
    """
    if not all(map(float.is_integer, values)):
        return False
    last = name.lower().rpartition("_")[2]
    if last == _SEED:
        return True
    by_task: dict[int, set[float]] = {}
    repeated = False
    for unit in units:
        own = known_values(column, unit.rows)
        known = by_task.setdefault(unit.task, set())
        known.update(own)
        repeated = repeated or len(own) > 1
        if len(known) > 1:
            return False
    if last in _ID_WORDS:
        return True
    told = [value for known in by_task.values() for value in known]
    enough = len(told) > _FEW and repeated
    return enough and len(set(told)) >= _MOSTLY * len(told)
