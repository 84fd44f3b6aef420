"""Journals: files that only grow, one whole line per finished rollout.

A line is written and flushed before its rollout counts as done, and synced to disk
about once a second off the event loop. A torn or damaged line is moved to the
`_damaged` file when a journal is opened, so that its rollout is owed again.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

import orjson

from tasks.adapters.jsonl import parse_object, read_lines, replace_file
from tasks.core.errors import OutputLockedError, RecordError

SYNC_SECONDS = 1.0


@contextmanager
def output_lock(path: Path) -> Iterator[None]:
    """Hold an output's lock, so that it has one writer.

    The lock is the operating system's: it is gone with its owner, however it ends.

    Raises:
        OutputLockedError: another process holds it; names that process.
    """
    with _locked(path) as file:
        file.truncate(0)
        file.write(orjson.dumps(_this_process()))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = _owner(file.read())
            file.close()
            raise OutputLockedError(
                f"another run is writing this output: {owner}. Wait for it, stop it,"
                " or give another --output"
            ) from error
        # The last owner may have removed the file between our open and our lock.
        if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
        file.close()


def _this_process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _owner(content: bytes) -> str:
    try:
        owner = orjson.loads(content)
        return f"pid {owner['pid']} on {owner['host']}, since {owner['started']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "an unnamed process"


def read_journal(
    path: Path, damaged: Path, take: Callable[[Mapping[str, Any]], None]
) -> int:
    """Give each line of a journal to `take`, and set aside those that are damaged.

    A line is damaged when it is no JSON object or `take` raises `RecordError`. The
    journal is then rewritten without it, whole or not at all.

    Returns:
        How many lines were set aside.
    """
    if not path.exists():
        return 0
    bad: list[tuple[int, bytes]] = []
    for line in read_lines(path):
        try:
            take(parse_object(line.text))
        except RecordError:
            bad.append((line.number, line.text))
    if bad:
        _set_aside(path, damaged, bad)
    _end_last_line(path)
    return len(bad)


def _set_aside(path: Path, damaged: Path, bad: list[tuple[int, bytes]]) -> None:
    with damaged.open("ab") as file:
        for number, text in bad:
            row = {
                "file": path.name,
                "line": number,
                "text": text.decode("utf-8", "replace"),
            }
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
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
    """An open journal; `append` returns when the line has left this process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._is_synced = True

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record as a whole line."""
        left = memoryview(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        while left:
            left = left[os.write(self._descriptor, left) :]
        self._is_synced = False

    async def sync(self) -> None:
        """Sync what was appended to the disk, without blocking the event loop."""
        if not self._is_synced:
            self._is_synced = True
            await asyncio.to_thread(os.fsync, self._descriptor)

    def close(self) -> None:
        """Sync and close."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
