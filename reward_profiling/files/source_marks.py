"""How far a file of records was read, and whether that part has changed since.

Size, times of change and inode show most changes at once; no program can set one of
these times. Otherwise a checksum decides: of the whole part up to 16 MB, and of 64
pieces of a longer one. A longer file that keeps its size but was written to again is
not trusted, nor is one that changed while it was read.
"""

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from reward_profiling.files.json_lines import open_to_read

_WHOLE_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 16 * 1024
_NUM_PIECES = 64
_UNSURE = -1
"""In place of the checksum of a file that was changed while it was read."""


class ScanEnd(NamedTuple):
    """How far a file was read."""

    place: int
    """Where the first byte that was not read stands."""
    line: int
    """How many lines were read, blank ones included."""
    is_torn: bool
    """Whether a last line without a newline was left out."""


class SourceMark(msgspec.Struct, frozen=True):
    """A file as it was when it was read."""

    name: str
    """Its path, from the folder of the columns."""
    size: int
    modified: int
    """Time of its last change, in nanoseconds."""
    changed: int
    """Time of the last change of it or of its times, likewise (`st_ctime_ns`)."""
    inode: int
    place: int
    """How many of its bytes were read."""
    line: int
    """How many lines that was."""
    checksum: int
    """Of what was read, or of pieces of it."""

    @property
    def end(self) -> ScanEnd:
        """Where reading ended."""
        return ScanEnd(self.place, self.line, is_torn=False)


class Glimpse(msgspec.Struct, frozen=True):
    """What the file system says of a file, before it is read."""

    size: int
    modified: int
    changed: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Glimpse":
        """Return what a look at a file found."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def glimpse(path: Path) -> Glimpse:
    """Look at a file.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    with open_to_read(path) as file:
        return Glimpse.of(os.fstat(file.fileno()))


Glimpses = dict[str, Glimpse | None]
"""Files by their name from some folder; None for one that is missing."""


def glimpses_of(folder: Path, paths: Iterable[Path]) -> Glimpses:
    """Look at files, some of which may be missing."""
    return {
        name_from(folder, path): glimpse(path) if path.exists() else None
        for path in paths
    }


def mark_of(path: Path, folder: Path, seen: Glimpse, end: ScanEnd) -> SourceMark:
    """Mark what was read of a file; `seen` is from before it was read."""
    checksum = _checksum(path, end.place)
    now = glimpse(path)
    has_grown = now.size > seen.size and now.inode == seen.inode
    return SourceMark(
        name=name_from(folder, path),
        size=seen.size,
        modified=seen.modified,
        changed=seen.changed,
        inode=seen.inode,
        place=end.place,
        line=end.line,
        checksum=checksum if now == seen or has_grown else _UNSURE,
    )


def name_from(folder: Path, path: Path) -> str:
    """Return a path as seen from a folder, so that both can be moved together."""
    return spelled(os.path.relpath(path, folder))


def spelled(path: Path | str) -> str:
    """Return a path as text; what is not UTF-8 in it is spelled out."""
    return os.fsencode(path).decode(errors="backslashreplace")


def changed_since(path: Path, mark: SourceMark) -> str | None:
    """Return how the part that was read has changed; None if it has not."""
    seen = glimpse(path)
    if seen.size < mark.place:
        return "is shorter than it was"
    is_same = seen == Glimpse(mark.size, mark.modified, mark.changed, mark.inode)
    is_longer = seen.size > mark.size and seen.inode == mark.inode
    if not is_same and not is_longer and mark.place > _WHOLE_BYTES:
        return "was written to, and not only at its end"
    if _checksum(path, mark.place) != mark.checksum:
        return "was changed, and not only at its end"
    if not _ends_a_line(path, mark.place):
        return "has more text in the line that was its last"
    return None


def _ends_a_line(path: Path, place: int) -> bool:
    """Say whether what was read is whole lines: the last may have got its newline."""
    with open_to_read(path) as file:
        file.seek(max(place - 1, 0))
        before, after = file.read(1), file.read(1)
    return place == 0 or b"\n" in {before, after} or not after


def _checksum(path: Path, stop: int) -> int:
    """Return the checksum of a file's first bytes, or of pieces of them."""
    with open_to_read(path) as file:
        descriptor = file.fileno()
        if stop <= _WHOLE_BYTES:
            return crc32_of(descriptor, 0, stop)
        found = 0
        step = (stop - _PIECE_BYTES) // (_NUM_PIECES - 1)
        for piece in range(_NUM_PIECES - 1):
            found = crc32_of(descriptor, piece * step, _PIECE_BYTES, found)
        return crc32_of(descriptor, stop - _PIECE_BYTES, _PIECE_BYTES, found)


def crc32_of(descriptor: int, place: int, count: int, start: int = 0) -> int:
    """Return the CRC-32 of bytes of an open file, going on from that of others."""
    found = start
    stop = place + count
    while place < stop:
        data = os.pread(descriptor, min(1 << 18, stop - place), place)
        if not data:
            break
        found = zlib.crc32(data, found)
        place += len(data)
    return found
