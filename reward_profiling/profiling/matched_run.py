"""A run as it was read: plan and records side by side."""

import msgspec

from reward_profiling.collecting.on_disk.failures import Failures
from reward_profiling.files.source_marks import Glimpses
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.gym.metric_columns import find_metric_columns
from reward_profiling.profiling.matching import Matching
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.records.rollout_metrics import DuplicateRecords
from reward_profiling.profiling.records.stored_records import FoundRecords
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.run_sources import RunSources
from reward_profiling.profiling.tabulation import fill_metrics, fill_replies


class MatchedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was read: plan and records side by side."""

    sources: RunSources
    plan: PlanColumns
    records: RecordColumns
    """In key order."""
    matching: Matching
    table: RolloutTable
    failures: dict[RolloutKey, Failures]
    duplicates: DuplicateRecords
    """Records that were left out, since their rollout has an earlier one."""
    found: FoundRecords
    """How the records were come by."""
    inputs: Glimpses
    """What plan and failures were before they were read."""

    def full_table(self) -> RolloutTable:
        """Return the table with its numeric columns and what replies say."""
        records = self.records
        rows = [row for row in range(len(records)) if not records.masked[row]]
        columns = find_metric_columns(records, rows)
        fill_metrics(self.table, records, self.matching, columns.metrics)
        fill_replies(self.table, records, self.matching)
        return self.table

    def place_of(self, record: int) -> str:
        """Return the file and the line of a record."""
        records = self.records
        return self.sources.place(records.file[record], records.line[record])
