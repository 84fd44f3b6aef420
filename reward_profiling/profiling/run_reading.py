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
from reward_profiling.errors import DuplicateRolloutError
from reward_profiling.files.json_lines import line_at
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import glimpses_of
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.on_disk.plan_scan import scan_plan
from reward_profiling.planning.on_disk.run_manifest import refuse_cut_plan
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.key_order import first_repeated, put_in_key_order
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.matching import Matching, match
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.records.record_scan import ScanOptions
from reward_profiling.profiling.records.rollout_metrics import DuplicateRecords
from reward_profiling.profiling.records.stored_records import FoundRecords, find_records
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.run_sources import RunSources
from reward_profiling.profiling.tabulation import tabulate

SHOWN_LINES = 10
"""Lines that a message names."""


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


@contextmanager
def without_cyclic_collection() -> Iterator[None]:
    """Stop Python's search for reference cycles: columns have none, and it is slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_run(sources: RunSources, request: ProfileRequest) -> MatchedRun:
    """Read plan, records and failures, and match them.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other.
    """
    options = ScanOptions(replies=request.replies, skip_torn=request.allow_partial)
    inputs = glimpses_of(sources.files.rollouts.parent, _other_files(sources))
    plan = scan_plan(sources.inputs)
    if sources.inputs == sources.files.materialized_inputs:
        refuse_cut_plan(sources.files, len(plan))
    found = find_records(
        sources.files.rollout_metrics,
        sources.rollouts,
        options,
        rebuild=request.rebuild,
    )
    records = found.records
    duplicates = _without_duplicates(sources, found)
    matching = _matched(sources, plan, records, request.allow_partial)
    failures = _failures(sources)
    return MatchedRun(
        sources=sources,
        plan=plan,
        records=records,
        matching=matching,
        table=tabulate(plan, records, matching, failures),
        failures=failures,
        duplicates=duplicates,
        found=found,
        inputs=inputs,
    )


def read_rollout_table(
    files: RunFiles,
    *,
    inputs: Path | None = None,
    rollouts: Sequence[Path] | None = None,
) -> RolloutTable:
    """Read plan, records and failures of an output into one row per planned rollout.

    `inputs` is the plan and `rollouts` the files of records, where they are not the
    output's own.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line does not belong to the run; names file and line.
    """
    plan = inputs or files.materialized_inputs
    sources = RunSources(plan, tuple(rollouts or [files.rollouts]), files)
    with without_cyclic_collection():
        request = ProfileRequest(allow_partial=True, replies=True)
        return read_run(sources, request).full_table()


def _other_files(sources: RunSources) -> list[Path]:
    """Return the plan, and the files of failures."""
    outputs = [sources.files, *map(RunFiles, sources.rollouts)]
    return [sources.inputs, *dict.fromkeys(files.failures for files in outputs)]


def _without_duplicates(sources: RunSources, found: FoundRecords) -> DuplicateRecords:
    """Put records in key order, and leave out those that have an earlier one.

    Raises:
        DuplicateRolloutError: there are some, and all of one file.
    """
    records, known = found.records, found.duplicates
    second = put_in_key_order(records)
    if not second:
        return known
    if len(sources.rollouts) == 1:
        _refuse_second(sources, records, second[0])
    places = [(records.file[row], records.line[row]) for row in second]
    records.drop(second)
    return DuplicateRecords(
        known.number + len(second),
        heapq.nsmallest(SHOWN_LINES, [*known.places, *places]),
    )


def _refuse_second(sources: RunSources, records: RecordColumns, row: int) -> Never:
    task, rollout = records.key(row)
    raise DuplicateRolloutError(
        f"{sources.place(records.file[row], records.line[row])}: task {task} repeat"
        f" {rollout} is already in line {records.line[row - 1]}"
    )


def _matched(
    sources: RunSources,
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
            f" task {task} repeat {rollout} is already in line"
            f" {line_at(sources.inputs, plan.place[first])}"
        ) from error


def _failures(sources: RunSources) -> dict[RolloutKey, Failures]:
    """Count the recorded failures beside the output and beside each of its files."""
    _, *paths = _other_files(sources)
    found: dict[RolloutKey, Failures] = {}
    for path in paths:
        for key, failures in scan_failures(path).items():
            found[key] = found[key].joined(failures) if key in found else failures
    return found
