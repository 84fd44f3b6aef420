"""Reads a file in blocks of complete lines, in constant memory."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from reward_profiling.files.json_lines import open_unbuffered

T = TypeVar("T")
BOM = b"\xef\xbb\xbf"
_BLOCK_BYTES = 256 * 1024
"""Fits in a processor's second-level cache, where parsing is fastest."""


class Block(NamedTuple):
    """Some whole lines of a file; its buffer is used again for the next block."""

    buffer: bytearray
    start: int
    """Where the first line starts in the buffer."""
    stop: int
    """Where the last line ends in the buffer, its newline included."""
    place: int
    """Where the buffer's first byte stands in the file."""
    is_open: bool
    """Whether this is one last line without a newline."""


def read_blocks(path: Path, place: int = 0) -> Iterator[Block]:
    """Yield the lines of a file from a place on; a byte order mark is left out.

    Raises:
        ConfigError: the file cannot be read.
    """
    buffer = bytearray(_BLOCK_BYTES)
    filled = 0
    with open_unbuffered(path) as descriptor:
        os.lseek(descriptor, place, os.SEEK_SET)
        while got := _fill(descriptor, buffer, filled):
            stop = buffer.rfind(b"\n", filled, filled + got) + 1
            filled += got
            if stop:
                yield Block(buffer, _mark(buffer, place), stop, place, is_open=False)
                buffer[: filled - stop] = buffer[stop:filled]
                place += stop
                filled -= stop
            elif filled == len(buffer):
                buffer.extend(bytes(len(buffer)))
    if filled:
        yield Block(buffer, _mark(buffer, place), filled, place, is_open=True)


def _fill(descriptor: int, buffer: bytearray, filled: int) -> int:
    with memoryview(buffer) as whole, whole[filled:] as free:
        return os.readv(descriptor, [free])


def _mark(buffer: bytearray, place: int) -> int:
    return len(BOM) if place == 0 and buffer.startswith(BOM) else 0


class Lines(NamedTuple):
    """Where a block's lines lie in its buffer."""

    starts: list[int]
    ends: list[int]
    """Their newlines left out."""


def lines_in(block: Block) -> Lines:
    """Return where each line of a block starts and ends."""
    find, stop = block.buffer.find, block.stop
    starts, ends = [], []
    start = block.start
    while start < stop:
        end = find(b"\n", start, stop)
        if end < 0:
            end = stop
        starts.append(start)
        ends.append(end)
        start = end + 1
    return Lines(starts, ends)


def lines_of(block: Block) -> Iterator[tuple[int, int]]:
    """Yield where each line of a block starts and ends, its newline left out."""
    return zip(*lines_in(block), strict=True)


def decoded_at_once(
    block: Block, lines: Lines, decode_lines: Callable[[memoryview], list[T]]
) -> list[T] | None:
    """Decode the objects of a block, one a line; None where lines need a closer look.

    The decoder skips newlines wherever JSON allows white space. But if every line
    starts and ends with a brace, no newline can be inside an object, because two braces
    there need a comma between them. So as many objects as lines means one per line.
    """
    buffer = block.buffer
    if not _BRACED.issuperset(map(buffer.__getitem__, lines.starts)):
        return None
    with memoryview(buffer) as whole, whole[block.start : block.stop] as view:
        try:
            found = decode_lines(view)
            if not buffer.isascii():  # what is passed over may not be UTF-8
                str(view, "utf-8")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    is_closed = _CLOSED.issuperset([buffer[end - 1] for end in lines.ends])
    return found if is_closed and len(found) == len(lines.ends) else None


_BRACED = frozenset(b"{")
_CLOSED = frozenset(b"}")
