"""The records whose reward may count, and who ran them."""

from collections.abc import Iterable, Sequence
from itertools import compress

import msgspec

from reward_profiling.numerics.number_column import gathered
from reward_profiling.planning.on_disk.plan_columns import PlanColumns, Runner
from reward_profiling.profiling.gym.metric_columns import (
    MetricColumns,
    Rows,
    find_metric_columns,
)
from reward_profiling.profiling.matching import Matching
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.summary.run_labels import run_labels


class MeasuredRecords(msgspec.Struct, frozen=True):
    """A run without its masked records and the rows of these."""

    plan: PlanColumns
    records: RecordColumns
    plan_of: Sequence[int]
    """Row of the plan of each record, measured or not."""
    planned: Rows
    """Rows of the plan that are no masked record's, in key order."""
    rows: Rows
    """Rows of the records, in key order."""
    labels: Sequence[str | None]
    """Label of each of the plan's runners."""
    columns: MetricColumns

    def runners(self, rows: Rows) -> Sequence[int]:
        """Return the runner of each of some records."""
        return gathered(self.plan.runner, gathered(self.plan_of, rows))

    def by_label(self, rows: Rows) -> dict[str, Rows]:
        """Group some records by label, in its order; those without one are dropped."""
        runners = self.runners(rows)
        labels = {self.labels[runner] for runner in set(runners)}
        if len(labels) == 1 and None not in labels:
            return {label: rows for label in labels if label is not None}
        found: dict[str, list[int]] = {}
        for row, runner in zip(rows, runners, strict=True):
            label = self.labels[runner]
            if label is not None:
                found.setdefault(label, []).append(row)
        return dict(sorted(found.items()))


def leave_out_masked(
    plan: PlanColumns, records: RecordColumns, matching: Matching
) -> MeasuredRecords:
    """Leave masked records out, together with their rows."""
    rows: Rows = range(len(records))
    planned = matching.plan_order
    if 1 in records.masked:
        rows = [row for row in rows if not records.masked[row]]
        marks = iter(records.masked)
        dropped = [has and next(marks) for has in matching.has_record]
        planned = list(compress(planned, [not drop for drop in dropped]))
    labels = run_labels(_runners_in_line_order(plan, planned))
    return MeasuredRecords(
        plan,
        records,
        matching.plan_of,
        planned,
        rows,
        [None if key is None else labels.get(key) for _, key in plan.runners],
        find_metric_columns(records, rows),
    )


def _runners_in_line_order(plan: PlanColumns, planned: Rows) -> Iterable[Runner]:
    rows = planned if isinstance(planned, range) else sorted(planned)
    numbers = dict.fromkeys(gathered(plan.runner, rows))
    return [plan.runners[number] for number in numbers]
