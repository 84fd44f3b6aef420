"""The plan, read in one pass into columns, without the prompts."""

from collections.abc import Sequence
from itertools import repeat
from operator import add
from pathlib import Path
from typing import NamedTuple

import msgspec

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import line_at
from reward_profiling.files.line_blocks import (
    Block,
    Lines,
    decoded_at_once,
    lines_in,
    read_blocks,
)
from reward_profiling.numerics.index_column import Index
from reward_profiling.numerics.number_column import INT64, UINT64_MAX
from reward_profiling.planning.on_disk.plan_columns import PlanColumns, Runner
from reward_profiling.planning.on_disk.plan_file import parsed_row
from reward_profiling.planning.on_disk.plan_repeats import TaskReader


class _Agent(msgspec.Struct):
    name: str


class _Line(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    rollout_index: int | str
    agent_ref: _Agent | None = None
    environment_server: str | None = None


_DECODER = msgspec.json.Decoder(_Line)


def scan_plan(path: Path) -> PlanColumns:
    """Read a plan into columns, one entry per line that is not blank, in their order.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no planned row; names file and line.
    """
    columns = PlanColumns()
    by_task = TaskReader(_DECODER.decode)
    line = 0
    for block in read_blocks(path):
        lines = lines_in(block)
        read = _together(block, lines, by_task) or _each(path, block, lines, line)
        columns.extend(
            [row.task_index for row in read.rows],
            read.indices,
            _runners(read.rows),
            list(map(add, read.starts, repeat(block.place))),
        )
        line += len(lines.ends)
    for name, column in (
        (wire.TASK_INDEX, columns.task),
        (wire.ROLLOUT_INDEX, columns.rollout),
    ):
        _refuse_wide(path, name, column, columns)
    return columns


def _refuse_wide(
    path: Path, name: str, column: Sequence[Index], columns: PlanColumns
) -> None:
    """Refuse indices that no writer of JSON here takes."""
    if not isinstance(column, list):
        return
    for row, index in enumerate(column):
        if isinstance(index, int) and not INT64[0] <= index <= UINT64_MAX:
            number = line_at(path, columns.place[row])
            raise RecordError(
                f"{path}:{number}: {name} is {index}, which does not fit in 64 bits;"
                " write it as text"
            )


class _Read(NamedTuple):
    """What lines hold."""

    rows: Sequence[_Line]
    """A repeat's may be the one of another repeat of its task."""
    indices: list[Index]
    """Their rollout indices."""
    starts: list[int]


def _together(block: Block, lines: Lines, by_task: TaskReader[_Line]) -> _Read | None:
    """Read a block's lines at once; None where they need a closer look."""
    if (found := by_task.read(block, lines)) is not None:
        return _Read(*found, lines.starts)
    rows = decoded_at_once(block, lines, _DECODER.decode_lines)
    if rows is None:
        return None
    return _Read(rows, [row.rollout_index for row in rows], lines.starts)


def _each(path: Path, block: Block, lines: Lines, line: int) -> _Read:
    """Read lines one by one, and leave out blank ones."""
    is_plain = block.buffer.isascii()  # what is passed over may not be UTF-8
    rows: list[_Line] = []
    starts: list[int] = []
    with memoryview(block.buffer) as view:
        for number, (start, end) in enumerate(zip(*lines, strict=True), line + 1):
            try:
                row = _DECODER.decode(view[start:end])
                if not is_plain:
                    str(view[start:end], "utf-8")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                text = bytes(view[start:end]).rstrip(b"\r")
                if not text or text.isspace():
                    continue
                row = _exact(path, text, number)
            rows.append(row)
            starts.append(start)
    return _Read(rows, [row.rollout_index for row in rows], starts)


def _exact(path: Path, text: bytes, line: int) -> _Line:
    """Read a line by the exact parser."""
    row = parsed_row(path, line, text)
    agent = None if row.agent is None else _Agent(row.agent)
    return _Line(*row.key, agent, row.run_key)


def _runners(rows: Sequence[_Line]) -> list[Runner]:
    agents = [None if row.agent_ref is None else row.agent_ref.name for row in rows]
    servers = [row.environment_server for row in rows]
    if not any(server is not None for server in servers):
        return list(zip(agents, agents, strict=True))
    keys = map(_run_key, agents, servers)
    return list(zip(agents, keys, strict=True))


def _run_key(agent: str | None, server: str | None) -> str | None:
    return agent if server is None else server
