"""A plan's lines that differ from the line before in their rollout index alone.

A plan holds a task once for each repeat, and planning writes the rollout index last.
What comes before it is compared as bytes then, which is quicker than to read it again.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from reward_profiling import wire
from reward_profiling.files.line_blocks import Block, Lines

_MOST_REPEATS = 256
_INDEX_AT_END = {b"%d}" % index: index for index in range(_MOST_REPEATS)}
"""How a line ends whose last member is so small a number."""
_BEFORE_INDEX = tuple(
    form % wire.ROLLOUT_INDEX.encode() for form in (b',"%b":', b', "%b": ')
)
"""How that member is written by us, and by Gym.

A quote after a comma opens a name, and a line that ends with its value ends the
outermost object: it is the line's own, and counts more than an earlier one so named.
"""
_LOOKED_AT = 3


class _Planned(Protocol):
    rollout_index: int | str


T = TypeVar("T", bound=_Planned)


class _Task(NamedTuple, Generic[T]):
    """A task, as its first line has it."""

    row: T
    lead: bytes
    """Its lines up to their rollout index."""


class TaskReader(Generic[T]):
    """Reads a plan's blocks, and of a task's repeats the first one only."""

    def __init__(self, decode: Callable[[memoryview], T]) -> None:
        self._decode = decode
        self._task: _Task[T] | None = None
        """The task of the last line that was read."""

    def read(
        self, block: Block, lines: Lines
    ) -> tuple[list[T], list[int | str]] | None:
        """Return the row of each line of a block, and its rollout index.

        The row of a repeat is the one of the task's first line. None where lines need
        a closer look, or where they do not follow on others of their task.
        """
        if not self._has_repeats(block, lines):
            return None
        buffer, task = block.buffer, self._task
        rows: list[T] = []
        indices: list[int | str] = []
        with memoryview(buffer) as view:
            for start, end in zip(*lines, strict=True):
                if task is not None and buffer.startswith(task.lead, start):
                    rest = bytes(view[start + len(task.lead) : end])
                    if (index := _INDEX_AT_END.get(rest)) is not None:
                        rows.append(task.row)
                        indices.append(index)
                        continue
                try:
                    row, lead = self._first(view[start:end])
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    return None
                rows.append(row)
                indices.append(row.rollout_index)
                task = None if lead is None else _Task(row, lead)
        self._task = task
        return rows, indices

    def _first(self, line: memoryview) -> tuple[T, bytes | None]:
        """Decode a line; return also how its task's other lines begin, if they do."""
        text = bytes(line)
        if not text.isascii():  # what is passed over may not be UTF-8
            text.decode()
        return self._decode(line), _lead(text)

    def _has_repeats(self, block: Block, lines: Lines) -> bool:
        """Say whether one of the first lines repeats the task of the one before.

        A line that is a block of its own may: its repeats are in the next ones.
        """
        starts, ends = lines
        if len(starts) == 1:
            return True
        lead = self._task.lead if self._task is not None else None
        with memoryview(block.buffer) as view:
            for start, end in zip(starts[:_LOOKED_AT], ends, strict=False):
                if lead is not None and block.buffer.startswith(lead, start):
                    return True
                lead = _lead(bytes(view[start:end]))
        return False


def _lead(text: bytes) -> bytes | None:
    """Return a line up to its rollout index, if that is its end."""
    start = max(text.rfind(b":"), text.rfind(b" ")) + 1
    if text[start:] not in _INDEX_AT_END or not text.endswith(_BEFORE_INDEX, 0, start):
        return None
    return text[:start]
