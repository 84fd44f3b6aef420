"""A plan's lines that differ from the line before in their rollout index alone.

A plan holds a task once for each repeat, and planning writes the rollout index last.
What comes before it is compared as bytes then, which is quicker than to read it again.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol, TypeVar

import msgspec

from tasks.adapters.line_blocks import Block, Lines
from tasks.core import wire

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


def decoded_by_task(
    block: Block, lines: Lines, decode: Callable[[memoryview], T]
) -> tuple[list[T], list[int | str]] | None:
    """Decode a line of each task; return each line's row, and its rollout index.

    The row of a repeat is the one of the task's first line. None where lines need a
    closer look, or where lines do not follow on others of their task.
    """
    if not _has_repeats(block, lines):
        return None
    buffer = block.buffer
    rows: list[T] = []
    indices: list[int | str] = []
    lead: bytes | None = None
    size = 0
    with memoryview(buffer) as view:
        for start, end in zip(*lines, strict=True):
            if lead is not None and buffer.startswith(lead, start):
                index = _INDEX_AT_END.get(bytes(view[start + size : end]))
                if index is not None:
                    rows.append(rows[-1])
                    indices.append(index)
                    continue
            text = bytes(view[start:end])
            try:
                text.decode()  # what is passed over may not be UTF-8
                row = decode(view[start:end])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
            rows.append(row)
            indices.append(row.rollout_index)
            lead = _lead(text)
            size = len(lead or b"")
    return rows, indices


def _lead(text: bytes) -> bytes | None:
    """Return a line up to its rollout index, if that is its end."""
    start = max(text.rfind(b":"), text.rfind(b" ")) + 1
    lead = text[:start]
    if lead.endswith(_BEFORE_INDEX) and text[start:] in _INDEX_AT_END:
        return lead
    return None


def _has_repeats(block: Block, lines: Lines) -> bool:
    """Say whether a line of the first few repeats the task of the one before."""
    texts = [
        bytes(block.buffer[start:end])
        for start, end in zip(lines.starts[:_LOOKED_AT], lines.ends, strict=False)
    ]
    leads = list(map(_lead, texts))
    return any(one is not None and one == other for one, other in pairwise(leads))
