"""Reading a run: its plan, its records and its failures, matched.

Records are read once and only their numbers kept, in columns.
"""

import gc
import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Never

import msgspec

from reward_profiling.collecting.on_disk.failures import Failures, scan_failures
from reward_profiling.errors import ConfigError, DuplicateRolloutError
from reward_profiling.files.json_lines import line_at
from reward_profiling.files.run_files import (
    RunFiles,
    output_of,
    plans_in,
    record_files,
)
from reward_profiling.files.source_marks import stamps_of
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.on_disk.plan_scan import scan_plan
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.key_order import first_repeated, put_in_key_order
from reward_profiling.profiling.matching import Matching, match
from reward_profiling.profiling.metric_columns import columns_of
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.records.record_scan import ScanOptions
from reward_profiling.profiling.records.rollout_metrics import Copies, Stamps
from reward_profiling.profiling.records.stored_records import FoundRecords, find_records
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.tabulation import fill_metrics, fill_replies, tabulate

SHOWN_LINES = 10
"""Lines that a message names."""


class Sources(msgspec.Struct, frozen=True):
    """The files that are profiled as one run, and where its own files lie."""

    inputs: Path
    """The plan."""
    rollouts: tuple[Path, ...]
    """Files of records; of two records of one rollout, the first one counts."""
    files: RunFiles
    """What is written lies beside this output."""


class Reading(msgspec.Struct, frozen=True):
    """A run as it was read: plan and records, matched."""

    plan: PlanColumns
    records: RecordColumns
    """In key order."""
    matching: Matching
    table: RolloutTable
    failures: dict[RolloutKey, Failures]
    copies: Copies
    """Records that were left out, since their rollout has an earlier one."""
    found: FoundRecords
    """How the records were come by."""
    stamps: Stamps
    """What plan and failures were before they were read."""

    def full_table(self) -> RolloutTable:
        """Return the table with its numeric columns and what replies say."""
        records = self.records
        rows = [row for row in range(len(records)) if not records.masked[row]]
        columns = columns_of(records, rows)
        fill_metrics(self.table, records, self.matching, columns.metrics)
        fill_replies(self.table, records, self.matching)
        return self.table


class ProfileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is profiled."""

    pass_threshold: float = 1.0
    """A rollout passes when its reward is at least this."""
    allow_partial: bool = False
    """Profile what there is, though planned rollouts have no record."""
    rebuild: bool = False
    """Read the records themselves, whatever the columns of an earlier profile say."""
    replies: bool = False
    """Read what replies say, too; insights need it."""


def sources_of(files: RunFiles) -> Sources:
    """Return the sources of an output that lies in one place."""
    return Sources(files.materialized_inputs, (files.rollouts,), files)


def sources_given(
    rollouts: Sequence[Path], *, inputs: Path | None, output: Path | None
) -> Sources:
    """Return the sources that a command names; a folder stands for its files.

    Raises:
        ConfigError: a path is none of a file of records, or no plan is there, or a
            folder holds several outputs and no plan is named.
    """
    for given in rollouts:
        if inputs is None and output is None and given.is_dir():
            refuse_several_plans(given)
    found = [path for given in rollouts for path in record_files(given)]
    paths = list(dict.fromkeys(found))
    for path in paths:
        RunFiles(path)  # refuses the name of a plan, of failures and the like
    is_one_file = len(paths) == 1 and not rollouts[0].is_dir()
    whole = RunFiles(output_of(paths))
    files = RunFiles(output or paths[0]) if output or is_one_file else whole
    plan = files.materialized_inputs
    if not plan.exists():
        plan = whole.materialized_inputs
    return Sources(inputs or plan, tuple(paths), files)


def refuse_several_plans(folder: Path) -> None:
    """Refuse a folder in which several outputs lie: they are not one run.

    Raises:
        ConfigError: names their plans.
    """
    plans = plans_in(folder)
    if len(plans) > 1:
        named = ", ".join(plan.name for plan in plans)
        raise ConfigError(
            f"{folder} holds several outputs; name one of their rollouts files. Their"
            f" plans are {named}"
        )


@contextmanager
def without_cyclic_collection() -> Iterator[None]:
    """Keep Python from looking for cycles among columns, where there are none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_run(sources: Sources, request: ProfileRequest) -> Reading:
    """Read plan, records and failures, and match them.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other.
    """
    options = ScanOptions(replies=request.replies, skip_torn=request.allow_partial)
    stamps = stamps_of(sources.files.rollouts.parent, _other_files(sources))
    plan = scan_plan(sources.inputs)
    found = find_records(
        sources.files.rollout_metrics,
        sources.rollouts,
        options,
        rebuild=request.rebuild,
    )
    records = found.records
    second = put_in_key_order(records)
    if second and len(sources.rollouts) == 1:
        _refuse_second(sources, records, second[0])
    copies = found.copies
    if second:
        new = [(records.file[row], records.line[row]) for row in second]
        places = heapq.nsmallest(SHOWN_LINES, [*copies.places, *new])
        copies = Copies(copies.number + len(second), places)
        records.drop(second)
    matching = _matched(sources, plan, records, request.allow_partial)
    failures = _failures(sources)
    return Reading(
        plan,
        records,
        matching,
        tabulate(plan, records, matching, failures),
        failures,
        copies,
        found,
        stamps,
    )


def _other_files(sources: Sources) -> list[Path]:
    """Return the plan, and the files of failures."""
    outputs = [sources.files, *map(RunFiles, sources.rollouts)]
    return [sources.inputs, *dict.fromkeys(files.failures for files in outputs)]


def place_of(sources: Sources, records: RecordColumns, row: int) -> str:
    """Return the file and the line of a record."""
    return f"{sources.rollouts[records.file[row]]}:{records.line[row]}"


def _refuse_second(sources: Sources, records: RecordColumns, row: int) -> Never:
    task, rollout = records.key(row)
    raise DuplicateRolloutError(
        f"{place_of(sources, records, row)}: task {task} repeat {rollout} stands in"
        f" line {records.line[row - 1]} already"
    )


def _matched(
    sources: Sources,
    plan: PlanColumns,
    records: RecordColumns,
    allow_partial: bool,  # noqa: FBT001
) -> Matching:
    try:
        return match(plan, records, allow_partial=allow_partial)
    except DuplicateRolloutError as error:
        # Of the plan, since records have been looked at before.
        first, second = first_repeated(plan)
        task, rollout = plan.key(second)
        raise DuplicateRolloutError(
            f"{sources.inputs}:{line_at(sources.inputs, plan.place[second])}:"
            f" task {task} repeat {rollout} stands in line"
            f" {line_at(sources.inputs, plan.place[first])} already"
        ) from error


def _failures(sources: Sources) -> dict[RolloutKey, Failures]:
    """Count the recorded failures beside the output and beside each of its files."""
    _, *paths = _other_files(sources)
    found: dict[RolloutKey, Failures] = {}
    for path in paths:
        for key, failures in scan_failures(path).items():
            found[key] = found[key].joined(failures) if key in found else failures
    return found
