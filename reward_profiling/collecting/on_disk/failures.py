"""The recorded failures of an output: one line for each failed attempt.

A last line without a newline may still be in the middle of being written.
"""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    located,
    parse_object,
    parse_record,
    read_lines,
)
from reward_profiling.files.line_blocks import Block, lines_of, read_blocks
from reward_profiling.planning.row_members import RolloutKey, rollout_key


class _Line(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    rollout_index: int | str
    failure_class: str | None = None
    failure_terminal: bool | None = None


_WORDS = (
    wire.FAILURE_MESSAGE, wire.FAILURE_JUDGE_ERROR, "failure_reason", "error",
)  # fmt: skip
"""Members that say why a rollout failed; the first that says something counts."""
_DECODE = msgspec.json.Decoder(_Line).decode


class Failures(NamedTuple):
    """The recorded failures of one rollout."""

    number: int
    last_class: str
    is_terminal: bool = False
    """Whether one of them says that the failure is terminal."""

    def joined(self, later: "Failures") -> "Failures":
        """Add failures that were recorded later."""
        return Failures(
            self.number + later.number,
            later.last_class,
            self.is_terminal or later.is_terminal,
        )


def scan_failures(path: Path) -> dict[RolloutKey, Failures]:
    """Count the recorded failures of each rollout; none where there is no file.

    A last line without a newline is incomplete and left out.

    Raises:
        RecordError: a line carries no rollout key; names file and line.
    """
    found: dict[RolloutKey, Failures] = {}
    if not path.exists():
        return found
    line = 0
    for block in read_blocks(path):
        for start, end in lines_of(block):
            line += 1
            text = bytes(block.buffer[start:end])
            if text and not text.isspace():
                _count(path, line, text, block, found)
    return found


def _count(
    path: Path,
    line: int,
    text: bytes,
    block: Block,
    found: dict[RolloutKey, Failures],
) -> None:
    try:
        row = _DECODE(text)
        key, name = (row.task_index, row.rollout_index), row.failure_class or ""
        is_terminal = bool(row.failure_terminal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            with located(path, line):
                parsed = parse_object(text.rstrip(b"\r"))
                key = rollout_key(parsed)
        except RecordError:
            if block.is_open:
                return
            raise
        said = parsed.get(wire.FAILURE_CLASS)
        name = "" if said is None else str(said)
        is_terminal = bool(parsed.get(wire.FAILURE_TERMINAL))
    failure = Failures(1, name, is_terminal)
    found[key] = found[key].joined(failure) if key in found else failure


def read_failures(
    path: Path, *, skip_damaged: bool = False
) -> Iterator[tuple[RolloutKey, dict[str, Any]]]:
    """Yield each recorded failure with its key, in order; none where there is no file.

    Raises:
        RecordError: a line cannot be read, and none is to be skipped; names file and
            line.
    """
    for line in read_lines(path) if path.exists() else ():
        try:
            with located(path, line.number):
                failure = parse_object(line.text)
                key = rollout_key(failure)
        except RecordError:
            if skip_damaged:
                continue
            raise
        yield key, failure


def words_of(failure: Mapping[str, Any]) -> str:
    """Return what a failure says of its cause; empty where it says nothing."""
    return str(next(filter(None, map(failure.get, _WORDS)), ""))


def attempt_of(line: bytes) -> Hashable:
    """Return what tells a line from those of other attempts, copies left aside.

    Raises:
        RecordError: it cannot be read.
    """
    failure = parse_record(line)
    return (*rollout_key(failure), str(failure.get(wire.ATTEMPT_INDEX)))
