"""A file read in blocks of whole lines, so that memory does not grow with it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.adapters.jsonl import open_unbuffered

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


def lines_of(block: Block) -> Iterator[tuple[int, int]]:
    """Yield where each line of a block starts and ends, its newline left out."""
    start = block.start
    while start < block.stop:
        end = block.buffer.find(b"\n", start, block.stop)
        if end < 0:
            end = block.stop
        yield start, end
        start = end + 1
