"""Reads collected records into columns in one pass, without building a `response`.

Only the plain members of a line are decoded: objects and lists are skipped, except the
usage of a `response`. If that fails, the exact parser parses the whole line and gives
its values, or its error.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import msgspec

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import located, open_to_read, parse_record
from reward_profiling.files.line_blocks import (
    Block,
    Lines,
    decoded_at_once,
    lines_in,
    read_blocks,
)
from reward_profiling.files.source_marks import ScanEnd
from reward_profiling.profiling.records.light_records import light_record
from reward_profiling.profiling.records.record_batches import Batch, batches_of
from reward_profiling.profiling.records.record_columns import (
    RecordColumns,
    ReplyColumns,
)

_BATCH_ROWS = 1_024
_BATCH_BYTES = 8_000_000


class PassedList(msgspec.Struct, array_like=True):
    """A list that was passed over."""


class PassedObject(TypedDict, total=False):
    """An object of which nothing but a `usage` was read."""

    usage: Any


_Member = int | float | bool | str | PassedObject | PassedList | None
_DECODER = msgspec.json.Decoder(dict[str, _Member])


START = ScanEnd(0, 0, is_torn=False)


class ScanOptions(NamedTuple):
    """How records are read."""

    replies: bool = False
    """Read what replies say, too, which takes a second look at each line."""
    skip_torn: bool = False
    """Leave out a last line that has no newline yet and is no record."""


class Scan:
    """Reads a file of records into columns, from where an earlier scan ended."""

    def __init__(
        self, path: Path, columns: RecordColumns, file: int, options: ScanOptions
    ) -> None:
        self._path = path
        self._columns = columns
        self._file = file
        self._skip_torn = options.skip_torn
        self._read_reply = _reply_reader() if options.replies else None
        self._replies: list[ReplyColumns] = []
        self._rows: list[dict[str, Any]] = []
        self._lines: list[int] = []
        self._places: list[int] = []
        self._bytes = 0

    def run(self, start: ScanEnd = START) -> ScanEnd:
        """Read the file from `start` on.

        Raises:
            ConfigError: the file cannot be read.
            RecordError: a line is no record; names file and line.
        """
        place, line, is_torn = (
            _after_newline(self._path, start.place),
            start.line,
            False,
        )
        for block in read_blocks(self._path, place):
            if block.is_open and self._skip_torn and not self._is_record(block):
                is_torn = True
                break
            line = self._take(block, line)
            place = block.place + block.stop
            if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
                self._flush()
        self._flush()
        return ScanEnd(place, line, is_torn)

    def _is_record(self, block: Block) -> bool:
        """Say whether a line without a newline is whole."""
        try:
            light_record(parse_record(bytes(block.buffer[block.start : block.stop])))
        except RecordError:
            return False
        return True

    def _take(self, block: Block, line: int) -> int:
        """Decode a block's lines; return how many lines were read by now."""
        lines = lines_in(block)
        rows = decoded_at_once(block, lines, _DECODER.decode_lines)
        if rows is None:
            self._take_each(block, lines, line)
        else:
            self._rows += rows
            self._lines += range(line + 1, line + 1 + len(rows))
            self._places += map(add, lines.starts, repeat(block.place))
        self._read_replies(block)
        self._bytes += block.stop
        return line + len(lines.ends)

    def _take_each(self, block: Block, lines: Lines, line: int) -> None:
        """Decode a block's lines one by one, and leave out blank ones."""
        is_plain = block.buffer.isascii()  # what is passed over may not be UTF-8
        with memoryview(block.buffer) as view:
            for number, (start, end) in enumerate(zip(*lines, strict=True), line + 1):
                try:
                    row = _DECODER.decode(view[start:end])
                    if not is_plain:
                        str(view[start:end], "utf-8")
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    text = bytes(view[start:end])
                    if not text or text.isspace():
                        continue
                    row = self._exact(text, number)
                self._rows.append(row)
                self._lines.append(number)
                self._places.append(block.place + start)

    def _read_replies(self, block: Block) -> None:
        """Read what the replies of a block's rows say, where that is asked for."""
        if self._read_reply is None:
            return
        with memoryview(block.buffer) as view:
            for place in self._places[len(self._replies) :]:
                start = place - block.place
                end = block.buffer.find(b"\n", start, block.stop)
                self._replies.append(
                    self._read_reply(view[start : end if end >= 0 else block.stop])
                )

    def _exact(self, text: bytes, line: int) -> dict[str, Any]:
        """Read a line by the exact parser."""
        with located(self._path, line):
            return light_record(parse_record(text))

    def _flush(self) -> None:
        """Put the rows read so far into the columns."""
        if not self._rows:
            return
        batches = batches_of(self._rows)
        if unusual := [at for b in batches if not _is_usual(b) for at in b.at]:
            self._mend(sorted(unusual))  # report the fault of the first line
            batches = batches_of(self._rows)
        self._columns.extend_batches(batches, self._file, self._lines, self._replies)
        for read in (self._rows, self._lines, self._places, self._replies):
            read.clear()
        self._bytes = 0

    def _mend(self, unusual: Sequence[int]) -> None:
        """Read those rows again in which something that was passed over decides.

        The others of an unusual batch stay: what is read does not hang on neighbours.
        """
        with open_to_read(self._path) as file:
            for at in unusual:
                if _is_usual(*batches_of([self._rows[at]])):
                    continue
                file.seek(self._places[at])
                text = file.readline().rstrip(b"\r\n")
                self._rows[at] = self._exact(text, self._lines[at])


def _reply_reader() -> Callable[[memoryview], ReplyColumns]:
    from reward_profiling.profiling.records.reply_text import read_reply  # noqa: PLC0415 - takes a while

    return read_reply


_USUAL = ScanOptions()


def _after_newline(path: Path, place: int) -> int:
    """Return where the next line starts: the last one may have got its newline."""
    with open_to_read(path) as file:
        file.seek(max(place - 1, 0))
        around = file.read(2)
    return place + (place > 0 and around[:1] != b"\n" and around[1:] == b"\n")


def _is_usual(batch: Batch) -> bool:
    """Say whether what was passed over decides nothing in any of the rows."""
    for name, allowed in _TYPES:
        if not set(map(type, batch.own.get(name, _LACKING))) <= allowed:
            return False
    if batch.usage:
        return True
    responses = batch.own.get(wire.RESPONSE, ())
    return {type((r or _NOTHING).get(wire.USAGE)) for r in responses} <= _OBJECT


_LACKING = (None,)
_NOTHING: dict[str, Any] = {}
_INDEX = frozenset({int, str})
_OBJECT = frozenset({dict, type(None)})
_SCALAR = frozenset({int, float, bool, str, type(None)})
_TYPES = (
    (wire.TASK_INDEX, _INDEX),
    (wire.ROLLOUT_INDEX, _INDEX),
    (wire.RESPONSE, _OBJECT),
    (wire.REWARD, _SCALAR),
    (wire.MASK_SAMPLE, _SCALAR),
    (wire.FAILURE_CLASS, _SCALAR),
)


def read_records(
    paths: Sequence[Path], options: ScanOptions = _USUAL
) -> tuple[RecordColumns, list[ScanEnd]]:
    """Read files of records into columns.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line is no record; names file and line.
    """
    columns = RecordColumns()
    ends = [
        Scan(path, columns, number, options).run() for number, path in enumerate(paths)
    ]
    columns.close()
    return columns, ends
