"""Parquet files: written and read by arro3, a part of their rows at a time.

It writes what every reader understands: optional columns of 64-bit numbers, booleans
and text. It reads only its own files, and only undamaged ones: the checksum of the file
is in its `created_by`, which is the last text in the file. The checksum counts its own
digits as zeros.
"""

import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from arro3 import io as arrow_files
from arro3.core import Array, DataType, RecordBatch, RecordBatchReader
from arro3.core import Table as ArrowTable

from reward_profiling.files.json_lines import replace_file
from reward_profiling.files.source_marks import crc32_of

TEXT, BOOLEAN = DataType.string(), DataType.bool()
INT64, FLOAT64 = DataType.int64(), DataType.float64()

ROWS_AT_ONCE = 2_048
"""Rows of a part. Writing and reading hold this many rows twice."""
_ROWS_OF_A_GROUP = 16_384  # which are there encoded, until they are written
_COMPRESSION = "zstd(1)"  # a quarter of the bytes for a hundredth of a profile's time
_ABOUT = "gym-reward-profiling"
_MAGIC = b"PAR1"
_SIZE_BYTES = 4
_TAIL_BYTES = _SIZE_BYTES + len(_MAGIC)
_CREATOR = b"gym-reward-profiling"
_LABEL = _CREATOR + b" crc32 "
_BLANK = b"00000000"
_CHANGED = "is damaged or foreign (changed, or written by another program)"


class ParquetError(ValueError):
    """A file that is incomplete, was changed, or was written by another program."""


# Values as Arrow's


def numbers(values: "array[Any]", present: bytes | bytearray | None = None) -> Array:
    """Return numbers of an array of type "q" or "d"; `present` is 0 for nothing."""
    kind = INT64 if values.typecode == "q" else FLOAT64
    if present is None or 0 not in present:
        return Array(values, kind)  # which is not copied
    shown = [v if has else None for v, has in zip(values, present, strict=True)]
    return Array(shown, kind)


def booleans(flags: bytes | bytearray) -> Array:
    """Return flags: 0, 1, or 2 for nothing."""
    return _FLAGS.take(Array(flags)) if flags else _FLAGS.slice(0, 0)


def texts(
    codes: "array[int] | bytes | bytearray", known: Sequence[str | None]
) -> Array:
    """Return texts by their positions in `known`."""
    return Array(known, TEXT).take(Array(codes)) if codes else Array([], TEXT)


_FLAGS = Array([False, True, None], BOOLEAN)


# Writing


def write_parquet(path: Path, parts: Iterable[Mapping[str, Array]], about: str) -> None:
    """Write a table, whole or not at all.

    Args:
        path: Where it is written.
        parts: Its rows, at most `ROWS_AT_ONCE` at a time, in columns by name; at least
            one part, which may be empty. Each is asked for in turn.
        about: What the file says of itself.

    Raises:
        OutputWriteError: the disk does not take it; what was there stays.
    """
    later = iter(parts)
    first = RecordBatch.from_pydict(dict(next(later)))
    schema = first.schema
    # Numbers seldom repeat, so a dictionary would only cost time and memory.
    texts = (name for name in schema.names if schema.field(name).type == TEXT)
    by_few: dict[str | Sequence[str], bool] = {(name,): True for name in texts}

    def write(file: IO[bytes]) -> None:
        guard = _Guard(file)
        rest = (RecordBatch.from_pydict(dict(part), schema=schema) for part in later)
        arrow_files.write_parquet(
            RecordBatchReader.from_batches(schema, guard.each(chain((first,), rest))),
            guard,  # type: ignore[arg-type]  # it has all that is asked of a file
            column_dictionary_enabled=by_few,
            compression=_COMPRESSION,
            created_by=(_LABEL + _BLANK).decode(),
            dictionary_enabled=False,
            key_value_metadata={_ABOUT: about},
            max_row_group_size=_ROWS_OF_A_GROUP,
            skip_arrow_metadata=True,
        )
        guard.finish()
        place, digits = _checksum(file.fileno())
        file.seek(place)
        file.write(digits)

    replace_file(path, write)


class _Guard(AbstractContextManager["_Guard"]):
    """Stands between the library and what it calls.

    The library panics if writing fails, and hides the type of an error that a part
    raises. So this object raises nothing until it is done; then the first error.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._error: BaseException | None = None
        self.seek = file.seek

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Keep the error."""
        self._error = self._error or error
        return True

    def each(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield batches, up to the first error."""
        with self:
            yield from batches

    def write(self, data: bytes) -> int:
        """Write, unless there was an error."""
        with self:
            if self._error is None:
                self._file.write(data)
        return len(data)

    def flush(self) -> None:
        """Have all of it written."""
        with self:
            self._file.flush()

    def finish(self) -> None:
        """Raise the first error."""
        if self._error is not None:
            raise self._error


def _checksum(descriptor: int) -> tuple[int, bytes]:
    """Return where a file's checksum stands, and what stands there if it is whole.

    Raises:
        ParquetError: it has no place for one.
    """
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    if tail[_SIZE_BYTES:] != _MAGIC:
        raise ParquetError("is damaged or foreign (is no Parquet file)")
    start = size - _TAIL_BYTES - int.from_bytes(tail[:_SIZE_BYTES], "little")
    footer = os.pread(descriptor, size, max(start, 0))
    found = footer.rfind(_CREATOR)
    if found < 0:
        raise ParquetError(_CHANGED)
    if footer[found : found + len(_LABEL)] != _LABEL:
        raise ParquetError("was written by another version")
    place = max(start, 0) + found + len(_LABEL)
    after = place + len(_BLANK)
    crc = zlib.crc32(_BLANK, crc32_of(descriptor, 0, place))
    return place, b"%08x" % crc32_of(descriptor, after, size - after, crc)


# Reading


class Table:
    """A table that was written here, to be read once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._reader = arrow_files.read_parquet(file, batch_size=ROWS_AT_ONCE)
        self.about = self._reader.schema.metadata[_ABOUT.encode()]
        """What it says of itself."""

    @property
    def names(self) -> list[str]:
        """The names of its columns, in order."""
        return self._reader.schema.names

    def whole(self) -> ArrowTable:
        """Read every row, in Arrow's memory."""
        return self._reader.read_all()

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """Read columns of numbers and texts.

        Returns:
            Numbers as an array of type "q" or "d", in which anything may stand where
            there is nothing; texts as a list.
        """
        from reward_profiling.files.arrow_memory import append_numbers  # noqa: PLC0415 - takes a while

        columns = {name: self._empty(name) for name in names}
        for batch in self._reader:
            for name, column in columns.items():
                if isinstance(column, list):
                    column.extend(batch[name].to_pylist())
                else:
                    append_numbers(column, batch[name])
        return columns

    def _empty(self, name: str) -> "array[Any] | list[Any]":
        kind = self._reader.schema.field(name).type
        if DataType.is_string(kind):
            return []
        return array("q" if DataType.is_int64(kind) else "d")


@contextmanager
def open_parquet(path: Path) -> Iterator[Table]:
    """Open a table that was written here.

    Raises:
        ParquetError: it is incomplete, was changed, or is another program's.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        place, digits = _checksum(file.fileno())
        if os.pread(file.fileno(), len(digits), place) != digits:
            raise ParquetError(_CHANGED)
        yield Table(file)


def read_table(path: Path) -> ArrowTable:
    """Read a whole table that was written here, in Arrow's memory.

    Raises:
        ParquetError: it was not, or not wholly, or was changed since.
        OSError: it cannot be read.
    """
    with open_parquet(path) as table:
        return table.whole()
