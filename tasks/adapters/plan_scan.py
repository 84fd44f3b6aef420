"""The plan, read in one pass into columns; what agents are asked is passed over."""

from pathlib import Path

import msgspec

from tasks.adapters.jsonl import located, parse_object
from tasks.adapters.line_blocks import Block, lines_of, read_blocks
from tasks.core import wire
from tasks.core.plan_columns import PlanColumns
from tasks.core.records import PlannedRow, planned_row

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
    return columns


def _take(path: Path, block: Block, line: int, columns: PlanColumns) -> int:
    is_plain = block.buffer.isascii()
    keys, runners, places = [], [], []
    with memoryview(block.buffer) as view:
        for start, end in lines_of(block):
            line += 1
            row = _read(view[start:end], block.place + start, is_plain=is_plain)
            if row is None:
                text = bytes(view[start:end])
                if not text or text.isspace():
                    continue
                with located(path, line):
                    row = planned_row(
                        parse_object(text.rstrip(b"\r")), block.place + start
                    )
            keys.append(row.key)
            runners.append((row.agent, row.run_key))
            places.append(row.place)
    columns.extend(keys, runners, places)
    return line


def _read(text: memoryview, place: int, *, is_plain: bool) -> PlannedRow | None:
    """Read a usual line; None where the exact parser has to decide."""
    try:
        line = _DECODE(text)
        if not is_plain:
            str(text, "utf-8")  # what is passed over may not be UTF-8
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    agent = None if line.agent_ref is None else line.agent_ref.name
    server = line.environment_server
    return PlannedRow(
        (line.task_index, line.rollout_index),
        agent,
        agent if server is None else server,
        place,
    )
