"""Plans and records for tests, written as rows and put into columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.gym.metric_columns import (
    MetricColumns,
    find_metric_columns,
)
from reward_profiling.profiling.key_order import put_in_key_order
from reward_profiling.profiling.records.light_records import light_record
from reward_profiling.profiling.records.record_columns import RecordColumns


class PlannedRow(NamedTuple):
    """One planned rollout: what profiling needs of a line of the plan."""

    key: RolloutKey
    agent: str | None
    run_key: str | None
    place: int
    """Where its line starts, in bytes."""


def plan_columns(rows: Iterable[PlannedRow]) -> PlanColumns:
    listed = list(rows)
    plan = PlanColumns()
    plan.extend(
        [row.key[0] for row in listed],
        [row.key[1] for row in listed],
        [(row.agent, row.run_key) for row in listed],
        [row.place for row in listed],
    )
    return plan


def record_columns(results: Sequence[Mapping[str, Any]]) -> RecordColumns:
    """Return records as they were read: one line each, in this order."""
    columns = RecordColumns()
    for line, result in enumerate(results, 1):
        columns.extend([light_record(result)], 0, [line])
    columns.close()
    return columns


def ordered_records(results: Sequence[Mapping[str, Any]]) -> RecordColumns:
    records = record_columns(results)
    put_in_key_order(records)
    return records


def metric_columns(records: RecordColumns) -> MetricColumns:
    rows = [row for row in range(len(records)) if not records.masked[row]]
    return find_metric_columns(records, rows)
