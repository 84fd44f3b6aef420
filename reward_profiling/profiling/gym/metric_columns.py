"""The numeric columns of a run, and the statistics of one group of records.

Source: `gym-contract.md` §4.2 and §4.4.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from reward_profiling.errors import RecordError
from reward_profiling.numerics import moments
from reward_profiling.numerics.number_column import (
    ABSENT,
    BOOL,
    FLOAT,
    INT,
    INT64,
    IS_NUMBER,
    Number,
    NumberColumn,
)
from reward_profiling.profiling.records.record_columns import RecordColumns

STATISTICS = ("mean", "max", "min", "median", "std")
_MEDIAN_BY_COLUMN = 600
"""Rows from which NumPy takes medians of several columns one by one."""
Rows = Sequence[int]
Values = Sequence[Number | None]


class MetricColumn(msgspec.Struct, frozen=True):
    """A number that records have: a member of their own, of their usage, or both.

    Where a record has both, usage wins, whether it is a number or not.
    """

    name: str
    own: NumberColumn | None
    usage: NumberColumn | None
    whole: bool = False
    """Every measured record has it, as a whole number."""
    full: bool = False
    """Every measured record has it, as a number."""

    def at(self, rows: Rows) -> Values:
        """Return the values of some records, whole numbers as such."""
        return self._chosen(
            rows,
            None if self.own is None else self.own.at(rows),
            None if self.usage is None else self.usage.at(rows),
        )

    def floats_at(self, rows: Rows) -> Values:
        """Return the values of some records as floats, unless all are whole."""
        if self.whole:
            return self.at(rows)
        return self._chosen(
            rows,
            None if self.own is None else self.own.floats_at(rows),
            None if self.usage is None else self.usage.floats_at(rows),
        )

    def _chosen(self, rows: Rows, own: Values | None, usage: Values | None) -> Values:
        if self.usage is None or usage is None:
            return own or []
        if own is None:
            return usage
        kinds = self.usage.kinds_at(rows)
        return [
            ours if kind == ABSENT else theirs
            for ours, theirs, kind in zip(own, usage, kinds, strict=True)
        ]

    def kinds_at(self, rows: Rows) -> bytes:
        """Return the kinds of some records' values."""
        if self.own is None or self.usage is None:
            column = self.own or self.usage
            return b"" if column is None else column.kinds_at(rows)
        pairs = zip(self.own.kinds_at(rows), self.usage.kinds_at(rows), strict=True)
        return bytes(own if usage == ABSENT else usage for own, usage in pairs)


class MetricColumns(msgspec.Struct, frozen=True):
    """The numeric columns of a run."""

    metrics: tuple[MetricColumn, ...]
    """In order of first appearance over all measured records, in key order."""
    every_int: bool
    """True when all columns are whole and of one 64-bit type, signed or unsigned."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(metric.name for metric in self.metrics)

    def adds_middle_twice(self, metric: MetricColumn, size: int) -> bool:
        """Say whether Gym adds the middle value of a group of `size` to itself.

        NumPy takes the medians of adjacent columns of floats at once as the half of two
        values' sum, and the two are one where their number is odd (`numpy.ma.median`,
        for fewer than 600 rows): a value above half of the largest overflows.
        """
        if metric.whole or size >= _MEDIAN_BY_COLUMN:
            return False
        at = self.names.index(metric.name)
        around = (*self.metrics[max(at - 1, 0) : at], *self.metrics[at + 1 : at + 2])
        return not all(one.whole for one in around)

    @property
    def whole(self) -> frozenset[str]:
        """Columns that every record has, with whole numbers only."""
        return frozenset(metric.name for metric in self.metrics if metric.whole)


def find_metric_columns(records: RecordColumns, rows: Rows) -> MetricColumns:
    """Find the columns of the measured records, whose `rows` are in key order.

    Raises:
        RecordError: a column of whole numbers spans more than 64 bits.
    """
    found: list[tuple[int, tuple[bool, int], MetricColumn]] = []
    num_unsigned = 0
    for name in dict.fromkeys([*records.own, *records.usage]):
        metric = MetricColumn(name, records.own.get(name), records.usage.get(name))
        if name.startswith("_"):
            continue
        kinds = metric.kinds_at(rows)
        first = kinds.translate(IS_NUMBER).find(1)
        if first < 0:
            continue
        metric = replace(
            metric,
            whole=not kinds.strip(bytes((INT, BOOL))),
            full=0 not in kinds.translate(IS_NUMBER),
        )
        if FLOAT not in kinds:
            num_unsigned += _is_unsigned(metric, rows) and metric.whole
        found.append((first, _place(records, rows[first], metric), metric))
    found.sort(key=lambda entry: entry[:2])
    metrics = tuple(metric for _, _, metric in found)
    is_whole = all(metric.whole for metric in metrics)
    return MetricColumns(metrics, is_whole and num_unsigned in {0, len(metrics)})


def _is_unsigned(metric: MetricColumn, rows: Rows) -> bool:
    """Say whether the whole numbers need an unsigned column."""
    if not any(column and column.wide for column in (metric.own, metric.usage)):
        return False
    values = [value for value in metric.at(rows) if value is not None]
    low, high = min(values), max(values)
    if low < 0 and high > INT64[1]:
        raise RecordError(
            f"the values of {metric.name!r} span from {low} to {high}, which"
            " no 64-bit column holds; write them as floats"
        )
    return high > INT64[1]


def _place(records: RecordColumns, row: int, metric: MetricColumn) -> tuple[bool, int]:
    """Return where a metric stands in a record: its own members come first."""
    layout = records.layouts[records.layout[row]]
    if metric.own is not None and metric.own.kinds[row] != ABSENT:
        return False, layout.own.index(metric.name)
    return True, layout.usage.index(metric.name)


def present_values(values: Values) -> list[Any]:
    """Return the values that are there."""
    if values.count(None) == 0:
        return list(values)
    return [value for value in values if value is not None]


def stat_major(
    columns: MetricColumns, described: Mapping[str, Mapping[str, Number]]
) -> dict[str, Number]:
    """Return `mean/… max/… min/… median/… std/…` of every column, in Gym's order.

    A column without a value is left out; `std` of one value among several rows too.
    """
    return {
        f"{statistic}/{name}": described[name][statistic]
        for statistic in STATISTICS
        for name in columns.names
        if statistic in described[name]
    }


def describe_column(
    values: Values,
    *,
    whole: bool,
    every_int: bool,
    full: bool = False,
    ranked: list[Any] | None = None,
) -> dict[str, Number]:
    """Return the statistics of one column; empty when it has no value.

    `values[r]` belongs to the r-th record in key order. max and min stay whole
    numbers only when every column of the run is (`every_int`); `whole` says that this
    column is, and `full`, that no value is missing. `ranked` are the present values in
    ascending order, where they are known.
    """
    average, deviation = moments.mean_and_std(values, whole=whole, full=full)
    if average is None:
        return {}
    present = ranked or sorted(present_values(values))
    low, high = moments.least(present), present[-1]
    found: dict[str, Number] = {
        "mean": average,
        "max": high if every_int else float(high),
        "min": low if every_int else float(low),
        "median": moments.median(present),
    }
    # Gym drops NaN, for instance the spread of sums that overflow.
    if deviation is not None and not math.isnan(deviation):
        found["std"] = deviation
    if math.isnan(average):
        del found["mean"]
    return found
