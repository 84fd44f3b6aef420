"""Profile: a plan and its records become Gym's three profile files.

Records are read once and only their numbers kept, in columns; the representative row
of a task is read back from its place when its line is written.
"""

import gc
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import msgspec
import orjson

from tasks.adapters.failure_scan import scan_failures
from tasks.adapters.jsonl import (
    line_at,
    open_to_read,
    read_row,
    replace_bytes,
    replace_rows,
)
from tasks.adapters.plan_scan import scan_plan
from tasks.adapters.record_scan import ScanOptions
from tasks.adapters.rollout_metrics import Copies, RunRows, write_rollout_metrics
from tasks.adapters.run_directory import RunFiles, output_of, record_files
from tasks.adapters.source_marks import glimpse, name_from
from tasks.core import wire
from tasks.core.columns import columns_of
from tasks.core.completeness import Matching, match
from tasks.core.counts import RunCounts
from tasks.core.errors import DuplicateRolloutError
from tasks.core.key_order import first_repeated, ordered_with_seconds
from tasks.core.plan_columns import PlanColumns
from tasks.core.profiling import Profile, profile_matched
from tasks.core.record_columns import RecordColumns
from tasks.core.records import RolloutKey
from tasks.core.rollout_table import RolloutTable
from tasks.core.summary import run_counts, summarize
from tasks.core.tabulating import (
    Failures,
    fill_metrics,
    fill_replies,
    tabulate,
    unscored_reasons,
)
from tasks.operations.stored_records import FoundRecords, find_records, marks_of

if TYPE_CHECKING:
    from tasks.core.models import RunSummary
    from tasks.core.options import ProfileOptions

_SHOWN_LINES = 10


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
    stamps: list[list[int | str]]
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
        ConfigError: a path is none of a file of records, or no plan is there.
    """
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
    plan = scan_plan(sources.inputs)
    stamps = _stamps(sources)
    found = find_records(
        sources.files.rollout_metrics,
        sources.rollouts,
        options,
        rebuild=request.rebuild,
    )
    records, second = ordered_with_seconds(found.records)
    if second and len(sources.rollouts) == 1:
        _refuse_second_record(sources, records, second[0])
    copies = found.copies
    if second:
        new = [(records.file[row], records.line[row]) for row in second]
        places = heapq.nsmallest(_SHOWN_LINES, [*copies.places, *new])
        copies = Copies(copies.number + len(second), places)
        records = records.without(second)
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


def _stamps(sources: Sources) -> list[list[int | str]]:
    """Return what plan and failures are before they are read."""
    folder = sources.files.rollout_metrics.parent
    return [
        [name_from(folder, path), *_numbers(path)] for path in _other_files(sources)
    ]


def _numbers(path: Path) -> list[int | str]:
    if not path.exists():
        return []
    seen = glimpse(path)
    return [seen.size, seen.modified, seen.inode]


def _other_files(sources: Sources) -> list[Path]:
    """Return the plan, and the files of failures."""
    outputs = [sources.files, *map(RunFiles, sources.rollouts)]
    return [sources.inputs, *dict.fromkeys(files.failures for files in outputs)]


def _place(sources: Sources, records: RecordColumns, row: int) -> str:
    return f"{sources.rollouts[records.file[row]]}:{records.line[row]}"


def _refuse_second_record(sources: Sources, records: RecordColumns, row: int) -> Never:
    task, rollout = records.key(row)
    raise DuplicateRolloutError(
        f"{_place(sources, records, row)}: task {task} repeat {rollout} stands in line"
        f" {records.line[row - 1]} already"
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


def write_profile(sources: Sources, reading: Reading) -> Profile:
    """Write the three files; the profile's tasks are used up."""
    files = sources.files
    profile = profile_matched(reading.plan, reading.records, reading.matching)
    replace_rows(files.reward_profiling, _task_lines(profile, sources.inputs))
    replace_bytes(files.agent_metrics, orjson.dumps(profile.agents))
    replace_bytes(files.repeat_level_metrics, orjson.dumps(profile.repeats))
    return profile


def write_columns(sources: Sources, reading: Reading) -> None:
    """Write the run's columns, unless those that are there say the same."""
    path = sources.files.rollout_metrics
    stored = reading.found.stored
    if stored is not None and stored.stamps == reading.stamps:
        return
    rows = RunRows(
        reading.plan,
        reading.records,
        reading.matching,
        reading.table,
        reading.copies,
    )
    marks = marks_of(path, sources.rollouts, reading.found)
    write_rollout_metrics(path, rows, marks, reading.stamps)


def profile_run(sources: Sources, request: ProfileRequest) -> RunCounts:
    """Profile records against a plan, write Gym's files, and count what there is.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    with without_cyclic_collection():
        reading = read_run(sources, request)
        write_profile(sources, reading)
        write_columns(sources, reading)
        return counted(sources, reading, request.pass_threshold)


def counted(sources: Sources, reading: Reading, pass_threshold: float) -> RunCounts:
    """Count what there is of a run, and name what a person should look at."""
    files, records = sources.files, reading.records
    reasons = unscored_reasons(records)
    rows = _table_rows(reading.matching)
    agents = summarize(
        reading.table,
        {rows[row]: reason for row, reason in reasons.items()},
        pass_threshold=pass_threshold,
    )
    paths = [
        files.reward_profiling,
        files.agent_metrics,
        files.repeat_level_metrics,
        files.rollout_metrics,
    ]
    warnings = [*_unscored_lines(sources, records, reasons)]
    if reading.copies.number:
        places = [f"{sources.rollouts[f]}:{line}" for f, line in reading.copies.places]
        warnings.append(
            f"{reading.copies.number} records of rollouts that have an earlier one were"
            f" left out: {_listed(places, reading.copies.number)}"
        )
    if reading.found.note:
        warnings.append(reading.found.note)
    for path, end in zip(sources.rollouts, reading.found.ends, strict=True):
        if end.is_torn:
            warnings.append(
                f"{path}:{end.line + 1}: the last line was left out; it is being"
                " written, or its writer died"
            )
    if records.strays:
        warnings.append(
            f"{len(records.strays)} lines of {sources.rollouts[0]} are failures, not"
            " records"
        )
    return run_counts(
        str(files.rollouts), agents, [str(path) for path in paths], warnings
    )


def _table_rows(matching: Matching) -> "range | list[int]":
    """Return the table's row of each record."""
    every = range(len(matching.has_record))
    if 0 not in matching.has_record:
        return every
    return [row for row in every if matching.has_record[row]]


def _unscored_lines(
    sources: Sources, records: RecordColumns, reasons: Mapping[int, str]
) -> Iterator[str]:
    """Name the records without a score: how many, why, and where the first ones are."""
    for reason, count in sorted(Counter(reasons.values()).items()):
        rows = (row for row, found in reasons.items() if found == reason)
        places = ((records.file[row], records.line[row]) for row in rows)
        first = heapq.nsmallest(_SHOWN_LINES, places)
        named = [f"{sources.rollouts[file]}:{line}" for file, line in first]
        yield f"reward {reason}: {count} not scored: {_listed(named, count)}"


def _listed(places: list[str], count: int) -> str:
    more = count - len(places)
    return ", ".join(places) + (f" and {more} more" if more else "")


def _task_lines(profile: Profile, inputs: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the reward profile, each with its representative row."""
    with open_to_read(inputs) as file:
        for task in profile.tasks:
            sample = read_row(file, task.sample_place)
            del sample[wire.TASK_INDEX], sample[wire.ROLLOUT_INDEX]
            yield {**task.head, "sample": sample, **task.tail}


# For steps and commands that hand on models.


def profile_output(
    files: RunFiles, options: "ProfileOptions", *, allow_partial: bool = True
) -> "RunSummary":
    """Profile an output's plan and records, and summarise them by agent.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    request = ProfileRequest(
        pass_threshold=options.pass_threshold, allow_partial=allow_partial, replies=True
    )
    return profile_sources(sources_of(files), request)


def profile_files(
    inputs: Path, rollouts: Path, options: "ProfileOptions", *, allow_partial: bool
) -> "RunSummary":
    """Profile records against a plan that may lie elsewhere."""
    request = ProfileRequest(
        pass_threshold=options.pass_threshold, allow_partial=allow_partial
    )
    sources = Sources(inputs, (rollouts,), RunFiles(rollouts))
    return profile_sources(sources, request)


def profile_sources(sources: Sources, request: ProfileRequest) -> "RunSummary":
    """Profile a run and return the counts as a model."""
    from tasks.core.models import RunSummary  # noqa: PLC0415 - takes a while

    counts = profile_run(sources, request)
    return RunSummary.model_validate(counts, from_attributes=True)
