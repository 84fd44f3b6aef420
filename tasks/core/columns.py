"""The numeric columns of a run, and the statistics of one group of records.

Source: `gym-contract.md` §4.2 and §4.4.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.core import moments
from tasks.core.errors import RecordError
from tasks.core.records import Number, Record

STATISTICS = ("mean", "max", "min", "median", "std")
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Columns:
    """The numeric columns of a run."""

    names: tuple[str, ...]
    """In order of first appearance over all measured records, in key order."""
    whole: frozenset[str]
    """Columns that every record has, with whole numbers only."""
    every_int: bool
    """True when all columns are whole and of one 64-bit type, signed or unsigned."""


def columns_of(records: Sequence[Record]) -> Columns:
    """Find the columns of the measured records, given in key order.

    Raises:
        RecordError: a column of whole numbers spans more than 64 bits.
    """
    counts: Counter[str] = Counter()
    floats: set[str] = set()
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for record in records:
        for name, value in record.metrics.items():
            counts[name] += 1
            if isinstance(value, float):
                floats.add(name)
            else:
                low[name] = min(value, low.get(name, 0))
                high[name] = max(value, high.get(name, 0))
    for name in counts.keys() - floats:
        if low[name] < 0 and high[name] > _INT64_MAX:
            raise RecordError(
                f"the values of {name!r} span from {low[name]} to {high[name]}, which"
                " no 64-bit column holds; write them as floats"
            )
    whole = frozenset(
        name
        for name, count in counts.items()
        if count == len(records) and name not in floats
    )
    unsigned = sum(high[name] > _INT64_MAX for name in whole)
    every_int = len(whole) == len(counts) and unsigned in {0, len(whole)}
    return Columns(tuple(counts), whole, every_int=every_int)


def describe(records: Sequence[Record], columns: Columns) -> dict[str, Any]:
    """Return `mean/… max/… min/… median/… std/…` of every column, stat-major.

    A column without a value is left out; `std` of one value among several rows too.
    """
    found: dict[str, dict[str, Number]] = {name: {} for name in STATISTICS}
    for name in columns.names:
        values = [record.metrics.get(name) for record in records]
        described = describe_column(
            values, whole=name in columns.whole, every_int=columns.every_int
        )
        for statistic, value in described.items():
            found[statistic][f"{statistic}/{name}"] = value
    return {key: value for by_name in found.values() for key, value in by_name.items()}


def describe_column(
    values: Sequence[Number | None], *, whole: bool, every_int: bool
) -> dict[str, Number]:
    """Return the statistics of one column; empty when it has no value.

    `values[r]` belongs to the r-th record in key order. max and min stay whole
    numbers only when every column of the run is (`every_int`); `whole` says that this
    column is.
    """
    average = moments.mean(values, whole=whole)
    if average is None:
        return {}
    present = sorted(value for value in values if value is not None)
    low, high = moments.least(present), present[-1]
    found: dict[str, Number] = {
        "mean": average,
        "max": high if every_int else float(high),
        "min": low if every_int else float(low),
        "median": moments.median(present),
    }
    deviation = moments.std(values)
    if deviation is not None:
        found["std"] = deviation
    # Gym drops what is not a number, for instance the spread of sums that overflow.
    return {key: value for key, value in found.items() if not math.isnan(value)}
