"""The profile as the contract tells it, one record at a time: what ours must equal.

It keeps every record as an object and adds up value by value, so that it can be read
beside `gym-contract.md` §4. The product reads the same files in columns, in blocks.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.numerics.moments import median, quantile
from reward_profiling.planning.row_members import usage_of
from reward_profiling.profiling.gym.repeat_metrics import (
    across_repeats,
    confidence_interval,
)
from reward_profiling.profiling.summary.run_labels import run_labels
from tests.profiling.columns_of_rows import PlannedRow

Number = int | float
STATISTICS = ("mean", "max", "min", "median", "std")


@dataclass(frozen=True, slots=True)
class Record:
    """One collected rollout: a line of the rollouts file."""

    key: tuple[Any, Any]
    masked: bool
    """True when the server says that its reward measures nothing."""
    metrics: Mapping[str, Number]
    """Numeric columns, in first-seen order; usage wins over a same-named field."""
    info: Mapping[str, Any]
    """Its entry in `rollout_infos`, in Gym's key order."""
    failure_class: str | None
    """Set when the line is a failure that strayed into the rollouts file."""


def collected_record(result: Mapping[str, Any]) -> Record:
    """Take from a result what profiling needs."""
    key = (result[wire.TASK_INDEX], result[wire.ROLLOUT_INDEX])
    masked = bool(result.get(wire.MASK_SAMPLE))
    usage = usage_of(result)
    failure = result.get(wire.FAILURE_CLASS)
    return Record(
        key=key,
        masked=masked,
        metrics=_metrics(result, usage),
        info=_info(key, result, usage),
        failure_class=None if failure is None else str(failure),
    )


def _metrics(result: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Number]:
    # A key in both keeps its place but takes usage's value, number or not.
    # Only the result's own `mask_sample` is a mark; usage may count what it likes.
    own = {name: value for name, value in result.items() if name != wire.MASK_SAMPLE}
    merged = {**own, **usage}
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in merged.items()
        if isinstance(value, int | float) and not name.startswith("_")
    }


def _info(
    key: tuple[Any, Any], result: Mapping[str, Any], usage: Mapping[str, Any]
) -> dict[str, Any]:
    info: dict[str, Any] = {
        "rollout_id": f"{key[0]}:{key[1]}",
        wire.TASK_INDEX: key[0],
        wire.ROLLOUT_INDEX: key[1],
    }
    if wire.REWARD in result:
        info[wire.REWARD] = result[wire.REWARD]
    for name, value in usage.items():
        if isinstance(value, int | float):
            info[name] = int(value) if isinstance(value, bool) else value
    for name, value in result.items():
        if not isinstance(value, int | float) or name.startswith("_"):
            continue
        if name not in {wire.REWARD, wire.RESPONSE, wire.MASK_SAMPLE}:
            info[name] = int(value) if isinstance(value, bool) else value
    return info


def pairwise_sum(values: Sequence[float]) -> float:
    """Add floats in NumPy's pairwise order.

    Fewer than 8 values are added left to right; up to 128 in eight interleaved
    accumulators; more are split at half, rounded down to a multiple of 8.
    The sum of nothing is 0.0, and so is the sum of negative zeros: every reduction
    of NumPy's adds its pairwise sum to 0.0.
    """
    return 0.0 + _pairwise(values, 0, len(values))


def _pairwise(values: Sequence[float], start: int, count: int) -> float:
    if count < 8:
        return _left_to_right(values, start, start + count)
    if count <= 128:
        return _eight_lanes(values, start, count)
    half = count // 2
    half -= half % 8
    return _pairwise(values, start, half) + _pairwise(
        values, start + half, count - half
    )


def _left_to_right(values: Sequence[float], start: int, stop: int) -> float:
    total = 0.0
    for index in range(start, stop):
        total += values[index]
    return total


def _eight_lanes(values: Sequence[float], start: int, count: int) -> float:
    whole = start + count - count % 8
    lanes = [float(value) for value in values[start : start + 8]]
    for base in range(start + 8, whole, 8):
        for lane in range(8):
            lanes[lane] += values[base + lane]
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for index in range(whole, start + count):
        total += values[index]
    return total


def buffered_sum(values: Sequence[float]) -> float:
    """Add whole numbers as floats in NumPy's order: pairwise per buffer of 8,192."""
    total = 0.0
    for start in range(0, len(values), 8192):
        total += pairwise_sum(values[start : start + 8192])
    return total


def mean(values: Sequence[float | None], *, whole: bool = False) -> float | None:
    """Return the mean of the present values; `None` when there are none.

    A missing value adds 0.0 in its place, which decides the order of additions.
    `whole` says that the column holds whole numbers in every record of the run.
    """
    count = sum(value is not None for value in values)
    if not count:
        return None
    add = buffered_sum if whole else pairwise_sum
    return add([0.0 if value is None else value for value in values]) / count


def std(values: Sequence[float | None]) -> float | None:
    """Return the sample standard deviation (ddof 1) about the mean.

    One value among several rows has no deviation (`None`); one row alone has 0.0,
    as Gym writes it. Unknown is not zero, and the insights say so.
    """
    count = sum(value is not None for value in values)
    if count < 2:
        return 0.0 if len(values) == 1 and count == 1 else None
    average = mean(values) or 0.0
    squares = [
        0.0 if value is None else (average - value) * (average - value)
        for value in values
    ]
    return math.sqrt(pairwise_sum(squares) / (count - 1))


def least(values: Sequence[Number]) -> Number:
    """Return the smallest value; of zeros that differ in sign, the last."""
    found = values[0]
    for value in values:
        found = min(value, found)
    return found


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
    """Find the columns of the measured records, given in key order."""
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
    whole = frozenset(
        name
        for name, count in counts.items()
        if count == len(records) and name not in floats
    )
    unsigned = sum(high[name] > 2**63 - 1 for name in whole)
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
        if described and _adds_middle_twice(name, columns, len(records)):
            described["median"] = (described["median"] + described["median"]) / 2.0
        for statistic, value in described.items():
            found[statistic][f"{statistic}/{name}"] = value
    return {key: value for by_name in found.values() for key, value in by_name.items()}


def _adds_middle_twice(name: str, columns: Columns, size: int) -> bool:
    """Say whether NumPy takes the median by masks, of adjacent columns at once."""
    pairs = list(zip(columns.names, columns.names[1:], strict=False))
    return size < 600 and any(
        name in pair and columns.whole.isdisjoint(pair) for pair in pairs
    )


def describe_column(
    values: Sequence[Number | None], *, whole: bool, every_int: bool
) -> dict[str, Number]:
    """Return the statistics of one column; empty when it has no value.

    `values[r]` belongs to the r-th record in key order. max and min stay whole
    numbers only when every column of the run is (`every_int`); `whole` says that this
    column is.
    """
    average = mean(values, whole=whole)
    if average is None:
        return {}
    present = sorted(value for value in values if value is not None)
    low, high = least(present), present[-1]
    found: dict[str, Number] = {
        "mean": average,
        "max": high if every_int else float(high),
        "min": low if every_int else float(low),
        "median": median(present),
    }
    deviation = std(values)
    if deviation is not None:
        found["std"] = deviation
    # Gym drops what is not a number, for instance the spread of sums that overflow.
    return {key: value for key, value in found.items() if not math.isnan(value)}


def repeat_entries(
    by_label: Mapping[str, Sequence[Record]], columns: Columns
) -> list[dict[str, Any]]:
    """Describe each repeat of each label over its tasks.

    `by_label[label]` holds the label's records in key order. Returns one entry per
    label and rollout index, both ascending.
    """
    return [
        entry
        for label, records in by_label.items()
        for entry in _entries_of_label(label, records, columns)
    ]


def _entries_of_label(
    label: str, records: Sequence[Record], columns: Columns
) -> list[dict[str, Any]]:
    by_index: dict[Any, list[Record]] = {}
    for record in records:
        by_index.setdefault(record.key[1], []).append(record)
    if len(by_index) < 2:
        return []
    total = len({record.key[0] for record in records})
    entries: list[dict[str, Any]] = []
    for index, members in sorted(by_index.items()):
        present = len({record.key[0] for record in members})
        entry: dict[str, Any] = {
            wire.AGENT_REF: {"name": label},
            wire.ROLLOUT_INDEX: int(index),
            "sample_count": present,
            "missing_count": total - present,
        }
        for name in sorted(columns.names):
            values = [
                record.metrics[name] for record in members if name in record.metrics
            ]
            whole = name in columns.whole
            if not whole:
                values = [float(value) for value in values]
            entry.update(_describe_repeat(name, values, whole=whole))
        entries.append(entry)
    return entries


def _describe_repeat(
    name: str, values: Sequence[Number], *, whole: bool
) -> dict[str, float]:
    if not values:
        return {}
    average, deviation, error = _mean_std_error(values, whole=whole)
    ordered = sorted(values)
    described = {
        f"mean/{name}": average,
        f"median/{name}": median(ordered),
        f"std/{name}": deviation,
        f"sem/{name}": error,
        f"min/{name}": float(least(ordered)),
        f"max/{name}": float(ordered[-1]),
        f"p25/{name}": quantile(ordered, 0.25),
        f"p75/{name}": quantile(ordered, 0.75),
    }
    interval = confidence_interval(average, error, len(values))
    if interval:
        described[f"ci_low_95/{name}"], described[f"ci_high_95/{name}"] = interval
    return described


def _mean_std_error(
    values: Sequence[Number], *, whole: bool
) -> tuple[float, float, float]:
    average = mean(values, whole=whole)
    if average is None:
        raise ValueError("no values have no mean")
    deviation = std(values) or 0.0
    return average, deviation, deviation / math.sqrt(len(values))


@dataclass(slots=True)
class _Group:
    """The collected records of one task (and label), in key order."""

    task_index: Any
    label: str | None
    place: int
    expected: int = 0
    records: list[Record] = field(default_factory=list)


def reference_files(
    plan: Sequence[Mapping[str, Any]], results: Iterable[Mapping[str, Any]]
) -> list[bytes]:
    """Return the content of the three files, for a plan in the order of its lines."""
    rows = [_planned(row, place) for place, row in enumerate(plan)]
    ordered = sorted(map(collected_record, results), key=lambda record: record.key)
    measured_rows, measured = _measured(rows, ordered)
    labels = run_labels([(row.agent, row.run_key) for row in measured_rows])
    pairs = _paired(measured_rows, measured)
    by_label = _records_by_label(pairs, labels)
    columns = columns_of(measured)
    repeats = repeat_entries(by_label, columns)
    agents = _agent_entries(by_label, repeats, columns)
    _append_coverage(agents, rows, ordered)
    lines = [
        orjson.dumps(_task_row(group, columns, plan)) + b"\n"
        for group in _groups(measured_rows, pairs, labels)
    ]
    return [b"".join(lines), orjson.dumps(agents), orjson.dumps(repeats)]


def _planned(row: Mapping[str, Any], place: int) -> PlannedRow:
    agent = row.get(wire.AGENT_REF, {}).get("name")
    run_key = row.get(wire.ENVIRONMENT_SERVER, agent)
    key = (row[wire.TASK_INDEX], row[wire.ROLLOUT_INDEX])
    return PlannedRow(key, agent, run_key, place)


def _measured(
    rows: Sequence[PlannedRow], ordered: Sequence[Record]
) -> tuple[Sequence[PlannedRow], list[Record]]:
    """Drop masked records together with their rows."""
    masked = {record.key for record in ordered if record.masked}
    if not masked:
        return rows, list(ordered)
    kept = [record for record in ordered if not record.masked]
    return [row for row in rows if row.key not in masked], kept


def _paired(
    rows: Iterable[PlannedRow], measured: Iterable[Record]
) -> list[tuple[PlannedRow, Record]]:
    by_key = {row.key: row for row in rows}
    return [(by_key[record.key], record) for record in measured]


def _label(row: PlannedRow, labels: Mapping[str, str]) -> str | None:
    return None if row.run_key is None else labels[row.run_key]


def _records_by_label(
    pairs: Iterable[tuple[PlannedRow, Record]], labels: Mapping[str, str]
) -> dict[str, list[Record]]:
    by_label: dict[str, list[Record]] = {}
    for row, record in pairs:
        label = _label(row, labels)
        if label is not None:
            by_label.setdefault(label, []).append(record)
    return dict(sorted(by_label.items()))


def _groups(
    rows: Sequence[PlannedRow],
    pairs: Iterable[tuple[PlannedRow, Record]],
    labels: Mapping[str, str],
) -> list[_Group]:
    """Group records by task, or by task and label where a task went to several."""
    tasks = {row.key[0] for row in rows}
    fan_out = len({(row.key[0], _label(row, labels)) for row in rows}) > len(tasks)

    def identity(row: PlannedRow) -> tuple[Any, str | None]:
        return row.key[0], _label(row, labels) if fan_out else None

    groups: dict[tuple[Any, str | None], _Group] = {}
    for row, record in pairs:
        key = identity(row)
        if fan_out and key[1] is None:
            continue  # Gym's grouping drops a row that has no label
        group = groups.setdefault(key, _Group(*key, place=row.place))
        group.records.append(record)
    for row in rows:
        if (known := groups.get(identity(row))) is not None:
            known.expected += 1
    return sorted(
        groups.values(), key=lambda group: (group.task_index, group.label or "")
    )


def _task_row(
    group: _Group, columns: Columns, plan: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    head: dict[str, Any] = {wire.TASK_INDEX: group.task_index}
    head.update(describe(group.records, columns))
    if group.label is not None:
        head[wire.AGENT_REF] = {"name": group.label}
    count = len(group.records)
    infos = [dict(record.info) for record in group.records]
    tail = {
        "num_rollouts": count,
        "expected_num_rollouts": group.expected,
        "missing_num_rollouts": group.expected - count,
        "reward_profile_completion_pct": 100.0 * count / group.expected,
        "rollout_infos": infos,
    }
    hidden = {wire.TASK_INDEX, wire.ROLLOUT_INDEX}
    sample = {k: v for k, v in plan[group.place].items() if k not in hidden}
    return {**head, "sample": sample, **tail}


def _agent_entries(
    by_label: Mapping[str, Sequence[Record]],
    repeats: Sequence[Mapping[str, Any]],
    columns: Columns,
) -> list[dict[str, Any]]:
    across = across_repeats(repeats)
    return [
        {
            **describe(records, columns),
            wire.AGENT_REF: {"name": label},
            **across.get(label, {}),
        }
        for label, records in by_label.items()
    ]


def _append_coverage(
    agents: list[dict[str, Any]],
    rows: Iterable[PlannedRow],
    ordered: Iterable[Record],
) -> None:
    """Add coverage keys to agents that masked something (§4.1, step 5)."""
    agent_by_key = {row.key: row.agent for row in rows if row.agent is not None}
    by_agent: dict[str, list[Record]] = {}
    for record in ordered:
        name = agent_by_key.get(record.key)
        if name is not None:
            by_agent.setdefault(name, []).append(record)
    entries = {entry[wire.AGENT_REF]["name"]: entry for entry in agents}
    for name, records in by_agent.items():
        coverage = coverage_metrics(records)
        if not coverage:
            continue
        if name not in entries:
            agents.append({wire.AGENT_REF: {"name": name}})
            entries[name] = agents[-1]
        entries[name].update(coverage)


def coverage_metrics(records: Sequence[Record]) -> dict[str, int]:
    """Return how much of the records was measured; empty when none is masked."""
    measured = [record for record in records if not record.masked]
    if len(measured) == len(records):
        return {}
    tasks = {record.key[0] for record in records}
    measured_tasks = {record.key[0] for record in measured}
    return {
        "coverage/measured_rollouts": len(measured),
        "coverage/masked_rollouts": len(records) - len(measured),
        "coverage/measured_tasks": len(measured_tasks),
        "coverage/fully_masked_tasks": len(tasks - measured_tasks),
    }
