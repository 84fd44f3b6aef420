"""Repeat-level metrics: repeat r of every task, and the spread across repeats.

Source: `gym-contract.md` §4.7. Only labels with two or more repeats have them.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.numerics import moments
from reward_profiling.numerics.index_column import Index
from reward_profiling.numerics.number_column import Number, gathered
from reward_profiling.numerics.student_t import t_975
from reward_profiling.profiling.gym.metric_columns import (
    MetricColumns,
    Rows,
    describe_column,
    present_values,
    stat_major,
)
from reward_profiling.profiling.key_order import task_spans
from reward_profiling.profiling.records.record_columns import RecordColumns

_NOT_METRICS = frozenset({
    wire.TASK_INDEX,
    wire.ROLLOUT_INDEX,
    wire.ATTEMPT_INDEX,
    "sample_count",
    "missing_count",
    "num_repeats",
    "token_usage_version",
})  # fmt: skip
_STATISTIC_PREFIXES = (
    "max/", "min/", "median/", "std/", "sem/", "se/", "p25/", "p75/",
    "ci_low_95/", "ci_high_95/", "histogram/",
)  # fmt: skip
_STATISTIC_SUFFIXES = (
    "/max", "/min", "/median", "/p5", "/p25", "/p75", "/p95", "/ci_low_95",
    "/ci_high_95", "/ci_lower", "/ci_upper", "_ci_lower", "_ci_upper",
    "_ci95_lower", "_ci95_upper", "/" + wire.ATTEMPT_INDEX,
    "/std_dev_across_runs", "/std_err_across_runs", "/avg_sample_std_dev",
)  # fmt: skip


class LabelEntries(NamedTuple):
    """What the records of one label come to."""

    agent: dict[str, Number]
    """Their statistics, stat-major."""
    repeats: list[dict[str, Any]]
    """The same of each repeat; none where there is only one."""


def label_entries(
    label: str, records: RecordColumns, rows: Rows, columns: MetricColumns
) -> LabelEntries:
    """Describe a label's records, in key order, as a whole and by repeat.

    Raises:
        RecordError: a rollout index is text that is no number, or text in some tasks
            and a number in others.
    """
    by_index = _by_rollout_index(gathered(records.rollout, rows))
    if len(by_index) < 2:  # noqa: PLR2004 - one repeat compares with nothing
        by_index = []
    total = sum(1 for _ in task_spans(gathered(records.task, rows)))
    # A key is there once: the members of a repeat are of as many tasks.
    entries: list[dict[str, Any]] = [
        {
            wire.AGENT_REF: {"name": label},
            wire.ROLLOUT_INDEX: _as_number(index),
            "sample_count": len(members),
            "missing_count": total - len(members),
        }
        for index, members in by_index
    ]
    described = {}
    for metric in sorted(columns.metrics, key=attrgetter("name")):
        values = metric.floats_at(rows)
        ranked: list[Number] = []
        for entry, (_, members) in zip(entries, by_index, strict=True):
            chosen = gathered(values, members)
            if not metric.full:
                chosen = present_values(chosen)
            in_order = sorted(chosen)
            ranked += in_order
            entry.update(
                _describe_repeat(metric.name, chosen, in_order, whole=metric.whole)
            )
        statistics = describe_column(
            values,
            whole=metric.whole,
            every_int=columns.every_int,
            full=metric.full,
            ranked=sorted(ranked),  # quick, since it is a few parts in order
        )
        if statistics and columns.adds_middle_twice(metric, len(rows)):
            statistics["median"] = moments.doubled(statistics["median"])
        described[metric.name] = statistics
    return LabelEntries(stat_major(columns, described), entries)


def _by_rollout_index(rollouts: Sequence[Index]) -> list[tuple[Index, Sequence[int]]]:
    """Return the positions of each rollout index, ascending."""
    distinct = set(rollouts)
    if len(set(map(type, distinct))) > 1:
        raise RecordError(
            f"{wire.ROLLOUT_INDEX} is text in some tasks and a number in others;"
            " use one kind, so that repeats can be put in order"
        )
    count = len(distinct)
    first = rollouts[:count]
    if len(rollouts) % count == 0 and list(first) * (len(rollouts) // count) == list(
        rollouts
    ):
        # All tasks have the same repeats, so each repeat is every nth record.
        positions = [range(at, len(rollouts), count) for at in range(count)]
        return sorted(zip(first, positions, strict=True), key=itemgetter(0))
    found: dict[Index, array[int]] = {}
    for position, index in enumerate(rollouts):
        if index not in found:
            found[index] = array("Q")
        found[index].append(position)
    return sorted(found.items())


def _as_number(index: int | str) -> int:
    try:
        return int(index)
    except ValueError as error:
        raise RecordError(
            f"{wire.ROLLOUT_INDEX} is {index!r}; give repeats numbers, so that they can"
            " be compared"
        ) from error


def _describe_repeat(
    name: str, values: Sequence[Number], ordered: Sequence[Number], *, whole: bool
) -> dict[str, float]:
    if not values:
        return {}
    average, deviation, error = _mean_std_error(values, whole=whole)
    described = {
        f"mean/{name}": average,
        f"median/{name}": moments.median(ordered),
        f"std/{name}": deviation,
        f"sem/{name}": error,
        f"min/{name}": float(moments.least(ordered)),
        f"max/{name}": float(ordered[-1]),
        f"p25/{name}": moments.quantile(ordered, 0.25),
        f"p75/{name}": moments.quantile(ordered, 0.75),
    }
    interval = confidence_interval(average, error, len(values))
    if interval:
        described[f"ci_low_95/{name}"], described[f"ci_high_95/{name}"] = interval
    return described


def _mean_std_error(
    values: Sequence[Number], *, whole: bool
) -> tuple[float, float, float]:
    average, deviation = moments.mean_and_std(values, whole=whole, full=True)
    if average is None or deviation is None:
        raise ValueError("an empty list has no mean")
    return average, deviation, deviation / math.sqrt(len(values))


def confidence_interval(
    average: float, error: float, count: int
) -> tuple[float, float] | None:
    """Return the 95 % t interval about a mean; None for fewer than two values."""
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return None
    if error == 0:
        return average, average
    t = t_975(count - 1)
    # This order of operations gives the reference's last bit.
    return -t * error + average, t * error + average


def across_repeats(
    entries: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, float]]:
    """Summarise the repeats of each label: its spread from repeat to repeat."""
    names = [
        name
        for name in dict.fromkeys(name for entry in entries for name in entry)
        if is_repeat_metric(name)
    ]
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_label.setdefault(entry[wire.AGENT_REF]["name"], []).append(entry)
    return {
        label: {
            key: value
            for name in names
            for key, value in _describe_across(name, members).items()
        }
        for label, members in by_label.items()
    }


def is_repeat_metric(name: str) -> bool:
    """Say whether a repeat's value is an estimate rather than a spread or count."""
    return (
        name not in _NOT_METRICS
        and name != wire.AGENT_REF
        and not name.startswith(_STATISTIC_PREFIXES)
        and not name.endswith(_STATISTIC_SUFFIXES)
        and "_across_repeats/" not in name
    )


def _describe_across(
    name: str, members: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    # A repeat whose sums overflow has no mean: NaN, which is no value.
    values = [
        value
        for member in members
        if not math.isnan(value := member.get(name, math.nan))
    ]
    if not values:
        return {}
    average, deviation, error = _mean_std_error(values, whole=False)
    ordered = sorted(values)
    described = {
        f"mean_across_repeats/{name}": average,
        f"median_across_repeats/{name}": moments.median(ordered),
        f"std_across_repeats/{name}": deviation,
        f"min_across_repeats/{name}": float(moments.least(ordered)),
        f"max_across_repeats/{name}": float(ordered[-1]),
        f"se_across_repeats/{name}": error,
    }
    interval = confidence_interval(average, error, len(values))
    if interval:
        low, high = interval
        described[f"ci_low_95_across_repeats/{name}"] = low
        described[f"ci_high_95_across_repeats/{name}"] = high
    return described
