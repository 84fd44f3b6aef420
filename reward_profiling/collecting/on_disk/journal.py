"""Journals: files that only grow, one whole line per finished rollout.

The operating system has a line before its rollout counts as done; a thread syncs to
disk about once a second. The journal's next owner moves an incomplete or damaged line
to the `.damaged` file, and its rollout is owed again.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple, Self

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.errors import OutputWriteError, RecordError
from reward_profiling.files.json_lines import (
    Line,
    located,
    parse_record,
    read_lines,
    replace_file,
)
from reward_profiling.files.locking.fence import Fence
from reward_profiling.planning.row_members import RolloutKey, rollout_key

SYNC_SECONDS = 1.0


class _Entry(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    rollout_index: int | str
    failure_terminal: object = None
    reward: object = None
    mask_sample: object = None


class Entry(NamedTuple):
    """What a line of a journal says."""

    key: RolloutKey
    is_terminal: bool
    """Whether it is a failure that is not to be tried again."""
    reward: object
    """As it stands there; None for a masked record."""


_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has fsync only
_DECODE = msgspec.json.Decoder(_Entry).decode
Take = Callable[[Entry], None]
"""Takes what a line says."""


def read_journal(path: Path, take: Take, damaged: Path | None = None) -> int:
    """Give each line of a journal to `take`.

    Given the `damaged` file, its owner moves lines that are no records there and
    rewrites the journal without them, whole or not at all. Anyone else passes over
    them: the last line may be on its way.

    Returns:
        How many lines were set aside.
    """
    if not path.exists():
        return 0
    bad: list[tuple[int, bytes]] = []
    for line in read_lines(path):
        try:
            read = _DECODE(line.text)
            if not line.text.isascii():
                line.text.decode()  # msgspec passes over what it skips
            entry: Entry | None = Entry(
                (read.task_index, read.rollout_index),
                bool(read.failure_terminal),
                None if read.mask_sample else read.reward,
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            entry = _odd_record(path, line)
        if entry is None:
            bad.append((line.number, line.text))
        else:
            take(entry)
    if damaged is None:
        return 0
    if bad:
        _set_aside(path, damaged, bad)
    _end_last_line(path)
    return len(bad)


def _odd_record(path: Path, line: Line) -> Entry | None:
    """Read a line that some writer of JSON may have written; None where it is damaged.

    Raises:
        RecordError: it is whole, but has no usable key: not damaged, but foreign. Names
            file and line.
    """
    try:
        row = parse_record(line.text)
    except RecordError:
        return None
    with located(path, line.number):
        key = rollout_key(row)
    reward = None if row.get(wire.MASK_SAMPLE) else row.get(wire.REWARD)
    return Entry(key, bool(row.get(wire.FAILURE_TERMINAL)), reward)


def _set_aside(path: Path, damaged: Path, bad: list[tuple[int, bytes]]) -> None:
    with damaged.open("ab") as file:
        for number, text in bad:
            row = {
                "file": path.name,
                "line": number,
                "text": text.decode("utf-8", "replace"),
            }
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        # On disk before the journal loses the lines: a crash must not lose both.
        file.flush()
        os.fsync(file.fileno())
    numbers = {number for number, _ in bad}

    def write(file: IO[bytes]) -> None:
        for line in read_lines(path):
            if line.number not in numbers:
                file.write(line.text + b"\n")

    replace_file(path, write)


def _end_last_line(path: Path) -> None:
    """Give the last line its newline, if a kill came between the two."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(size - 1)
        if file.read(1) != b"\n":
            file.write(b"\n")


class Journal:
    """An open journal with one writer, its lock held by the caller."""

    def __init__(self, path: Path, fence: Fence | None = None) -> None:
        self._path = path
        self._fence = fence or Fence()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a killed process must not lose lines in a buffer of its own.
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._size = os.fstat(self._descriptor).st_size
        self._is_synced = True

    def append(self, line: bytes) -> None:
        """Append one line; its newline is added here.

        Raises:
            OutputWriteError: the disk does not take it; no part of it stays.
            LockLostError: the lock has another holder by now.
        """
        self._fence.check()
        left = memoryview(line + b"\n")
        try:
            while left:  # a nearly full disk may take only a part
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise self._refused(error) from error
        self._size += len(line) + 1
        self._is_synced = False

    async def sync(self) -> None:
        """Sync what was appended to the disk, without blocking the event loop.

        Raises:
            OutputWriteError: the disk does not take it. A network disk, or one with a
                quota, may say so only now.
            LockLostError: the lock has another holder by now.
        """
        self._fence.check()
        if not self._is_synced:
            # Before the sync: lines that are appended meanwhile need another one.
            self._is_synced = True
            try:
                await asyncio.to_thread(_sync_data, self._descriptor)
            except OSError as error:
                self._is_synced = False
                raise self._refused(error) from error

    def close(self) -> None:
        """Sync and close.

        Raises:
            OutputWriteError: the disk does not take what was appended.
        """
        try:
            if not self._is_synced:
                _sync_data(self._descriptor)
        except OSError as error:
            raise self._refused(error) from error
        finally:
            os.close(self._descriptor)

    def _refused(self, error: OSError) -> OutputWriteError:
        return OutputWriteError(
            f"{self._path} cannot be written: {error.strerror}. Every complete"
            " record is kept; free some space and run the same command again"
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
