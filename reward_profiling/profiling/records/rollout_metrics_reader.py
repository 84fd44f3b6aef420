"""Reads the records of an earlier profile from `<stem>_rollout_metrics.parquet`."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter, mul
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.files.parquet import ParquetError, Table, open_parquet
from reward_profiling.numerics.number_column import OTHER, NumberColumn
from reward_profiling.profiling.records.record_columns import (
    NotFinite,
    RecordColumns,
)
from reward_profiling.profiling.records.record_shapes import Shape
from reward_profiling.profiling.records.rollout_metrics import VERSION, Head

_BYTE_VALUES = 256


class StoredRecords(NamedTuple):
    """The records of an earlier profile."""

    records: RecordColumns
    """In key order."""
    head: Head


class UnusableError(Exception):
    """The columns cannot be used; says why."""


def read_rollout_metrics(path: Path) -> StoredRecords:
    """Read the records of an earlier profile.

    Raises:
        UnusableError: they are damaged, foreign, of another version, or cannot be read.
    """
    try:
        with open_parquet(path) as table:
            head = _head(table)
            columns = table.columns(_read_names(head, table))
    except ParquetError as error:
        raise UnusableError(str(error)) from error
    except OSError as error:
        raise UnusableError(f"cannot be read ({error.strerror})") from error
    return StoredRecords(_records(columns, head), head)


class _Version(msgspec.Struct):
    version: int


def _head(table: Table) -> Head:
    said = msgspec.json.decode(table.about, type=_Version)
    if said.version != VERSION:
        raise UnusableError("was written by another version")
    return msgspec.json.decode(table.about, type=Head)


def _read_names(head: Head, table: Table) -> list[str]:
    fields = [field.column for field in head.fields if field.column]
    if_there = [name for name in ("answer", "_raw_reward") if name in table.names]
    return ["task_index", "rollout_index", "line", "_shape", *fields, *if_there]


class _Shapes:
    """The shapes of the records, by row of the table."""

    def __init__(self, numbers: "array[int]", shapes: Sequence[Shape]) -> None:
        self._shapes = shapes
        self._numbers: Sequence[int] = numbers
        if len(shapes) < _BYTE_VALUES:
            self._numbers = bytes(numbers.tolist())

    def told(self, tell: Callable[[Shape], int]) -> Sequence[int]:
        """Return what each row's shape tells; 0 for a row without a record."""
        values = [0, *map(tell, self._shapes)]
        if isinstance(self._numbers, bytes) and max(values) < _BYTE_VALUES:
            return self._numbers.translate(bytes(values).ljust(_BYTE_VALUES, b"\0"))
        return list(map(values.__getitem__, self._numbers))


def _records(columns: Mapping[str, Any], head: Head) -> RecordColumns:
    shapes = _Shapes(columns["_shape"], head.shapes)
    records = RecordColumns(
        task=_indices(columns["task_index"], head.index_forms[0]),
        rollout=_indices(columns["rollout_index"], head.index_forms[1]),
        file=array("I", list(shapes.told(attrgetter("file")))),
        line=columns["line"],
        masked=bytearray(shapes.told(attrgetter("masked"))),
        layout=array("I", list(shapes.told(attrgetter("layout")))),
        layouts=head.layouts,
        strays=head.strays,
    )
    for at, field in enumerate(head.fields):
        kinds = bytearray(shapes.told(lambda shape, at=at: shape.kinds[at]))  # type: ignore[misc]
        values = columns[field.column] if field.column else _zeros(len(kinds))
        column = NumberColumn(values, kinds, field.wide)
        getattr(records, field.source)[field.name] = column
    _note_raw_rewards(records, columns.get("_raw_reward"))
    if head.has_replies:
        has_answer = shapes.told(attrgetter("has_answer"))
        records.truncated = bytearray(shapes.told(attrgetter("truncated")))
        records.empty = bytearray(shapes.told(attrgetter("empty")))
        records.has_error = bytearray(shapes.told(attrgetter("has_error")))
        records.answer = array("q", map(mul, columns["answer"], has_answer))
    if 0 in columns["_shape"]:
        rows = range(len(columns["_shape"]))
        records.arrange(list(compress(rows, columns["_shape"])))
    return records


def _zeros(count: int) -> "array[int]":
    return array("q", bytes(8 * count))


def _indices(column: Any, form: str) -> Any:  # noqa: ANN401 - ints or texts
    return list(map(msgspec.json.decode, column)) if form == "json" else column


def _note_raw_rewards(records: RecordColumns, raw: Sequence[str | None] | None) -> None:
    if raw is None:
        return
    spellings = {member.value: member for member in NotFinite}
    for row, kind in enumerate(records.own[wire.REWARD].kinds):
        if kind == OTHER:
            text = raw[row]
            records.raw_rewards[row] = (
                None if text is None else spellings.get(text) or orjson.loads(text)
            )
