"""The plan, read in one pass into columns; what agents are asked is passed over."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tasks.adapters.jsonl import line_at, located, parse_object
from tasks.adapters.line_blocks import Block, lines_of, read_blocks
from tasks.core import wire
from tasks.core.errors import RecordError
from tasks.core.number_column import INT64, UINT64_MAX
from tasks.core.plan_columns import PlanColumns, Runner
from tasks.core.record_columns import Index
from tasks.core.records import planned_row

_NAMES = {
    "task_index": wire.TASK_INDEX,
    "rollout_index": wire.ROLLOUT_INDEX,
    "environment_server": wire.ENVIRONMENT_SERVER,
}


class _Agent(msgspec.Struct):
    name: str


class _Line(msgspec.Struct, rename=_NAMES.get):
    task_index: int | str
    rollout_index: int | str
    agent_ref: _Agent | None = None
    environment_server: str | None = None


_DECODE = msgspec.json.Decoder(_Line).decode


def scan_plan(path: Path) -> PlanColumns:
    """Read the materialized inputs into columns.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no planned row; names file and line.
    """
    columns = PlanColumns()
    line = 0
    for block in read_blocks(path):
        line = _take(path, block, line, columns)
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


def _take(path: Path, block: Block, line: int, columns: PlanColumns) -> int:
    """Read a block's lines; return how many lines were read by now."""
    is_plain = block.buffer.isascii()  # what is passed over may not be UTF-8
    rows: list[_Line] = []
    places: list[int] = []
    with memoryview(block.buffer) as view:
        for start, end in lines_of(block):
            line += 1
            try:
                row = _DECODE(view[start:end])
                if not is_plain:
                    str(view[start:end], "utf-8")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                text = bytes(view[start:end]).rstrip(b"\r")
                if not text or text.isspace():
                    continue
                row = _exact(path, text, line)
            rows.append(row)
            places.append(block.place + start)
    columns.extend(
        [row.task_index for row in rows],
        [row.rollout_index for row in rows],
        [_runner(row) for row in rows],
        places,
    )
    return line


def _exact(path: Path, text: bytes, line: int) -> _Line:
    """Read a line by the exact parser."""
    with located(path, line):
        exact = planned_row(parse_object(text), 0)
    agent = None if exact.agent is None else _Agent(exact.agent)
    return _Line(*exact.key, agent, exact.run_key)


def _runner(row: _Line) -> Runner:
    agent = None if row.agent_ref is None else row.agent_ref.name
    server = row.environment_server
    return agent, agent if server is None else server
