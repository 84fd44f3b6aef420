"""The records of a run: the columns of an earlier profile, plus newer records.

The files win over the columns. If the columns are damaged, foreign, from another
version or from other files, or if a file was changed anywhere except at its end,
everything is read again, with a note.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from reward_profiling.files.source_marks import (
    Glimpse,
    ScanEnd,
    SourceMark,
    changed_since,
    glimpse,
    mark_of,
    name_from,
)
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.records.record_scan import (
    Scan,
    ScanOptions,
    read_records,
)
from reward_profiling.profiling.records.rollout_metrics import DuplicateRecords
from reward_profiling.profiling.records.rollout_metrics_reader import (
    StoredRecords,
    UnusableError,
    read_rollout_metrics,
)


class FoundRecords(NamedTuple):
    """The records of a run, and how they were come by."""

    records: RecordColumns
    """In the order in which they were read, until they are put in another."""
    ends: list[ScanEnd]
    """How far each file was read."""
    seen: list[Glimpse]
    """What each file was before it was read."""
    note: str | None
    """Why the columns of an earlier profile were not used, where that is news."""
    stored: StoredRecords | None
    """The earlier profile's columns, where they hold all there is by now."""
    duplicates: DuplicateRecords
    """What the earlier profile left out."""


def find_records(
    columns: Path, rollouts: Sequence[Path], options: ScanOptions, *, rebuild: bool
) -> FoundRecords:
    """Read the records of some files, and as few bytes as possible.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line is no record; names file and line.
    """
    seen = [glimpse(path) for path in rollouts]
    note = None
    if columns.exists() and not rebuild:
        try:
            stored = _usable(columns, rollouts, options)
        except UnusableError as error:
            note = f"{columns} was rebuilt: {error}"
        else:
            if stored is not None:
                return _extended(stored, rollouts, seen, options)
    records, ends = read_records(rollouts, options)
    return FoundRecords(records, ends, seen, note, None, DuplicateRecords())


def _usable(
    columns: Path, rollouts: Sequence[Path], options: ScanOptions
) -> StoredRecords | None:
    """Return the stored records; None if they are valid but incomplete."""
    stored = read_rollout_metrics(columns)
    if options.replies and not stored.head.has_replies:
        return None
    names = [name_from(columns.parent, path) for path in rollouts]
    if [mark.name for mark in stored.head.sources] != names:
        raise UnusableError("it is of other files")
    for path, mark in zip(rollouts, stored.head.sources, strict=True):
        fault = changed_since(path, mark)
        if fault is not None:
            raise UnusableError(f"{path} {fault}")
    return stored


def _extended(
    stored: StoredRecords,
    rollouts: Sequence[Path],
    seen: list[Glimpse],
    options: ScanOptions,
) -> FoundRecords:
    """Add what came since to the stored records."""
    records = stored.records
    count = len(records)
    options = options._replace(replies=stored.head.has_replies)
    ends = [
        Scan(path, records, number, options).run(mark.end)
        for number, (path, mark) in enumerate(
            zip(rollouts, stored.head.sources, strict=True)
        )
    ]
    records.close()
    is_all = len(records) == count
    unchanged = stored if is_all else None
    return FoundRecords(records, ends, seen, None, unchanged, stored.head.duplicates)


def marks_of(
    columns: Path, rollouts: Sequence[Path], found: FoundRecords
) -> list[SourceMark]:
    """Mark what was read of each file."""
    return [
        mark_of(path, columns.parent, seen, end)
        for path, seen, end in zip(rollouts, found.seen, found.ends, strict=True)
    ]
