"""`<stem>_rollout_metrics.parquet`: one row per planned rollout, in key order.

It is a table to analyse, and what a later profile reads instead of the records. Columns
without an underscore in front are for people: the key, who ran it, what became of it,
and every number under its own name. The others keep what the table alone would lose
(which numbers were whole, in which order they stood), so that a profile made from the
columns is equal to the byte.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.files.parquet import (
    Booleans,
    Column,
    Numbers,
    ParquetError,
    Table,
    Texts,
    read_parquet,
    write_parquet,
)
from reward_profiling.files.source_marks import SourceMark
from reward_profiling.numerics.number_column import (
    INT64,
    IS_NUMBER,
    OTHER,
    NumberColumn,
)
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.profiling.gym_profile import run_labels
from reward_profiling.profiling.matching import Matching
from reward_profiling.profiling.records.record_columns import (
    Layout,
    NotFinite,
    RecordColumns,
)
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable
from reward_profiling.profiling.tabulation import placed

VERSION = 2
_KEY = "gym-reward-profiling"
_OWN, _USAGE = "own", "usage"
_STATUS = [status.name.lower().encode() for status in RolloutStatus]
_LAYOUT_BYTES = 4
_INT, _TEXT, _JSON = "int", "text", "json"
_NO_RECORD = 2
_PLAIN_NAMES = frozenset({
    "task_index", "rollout_index", "agent", "label", "status", "masked", "attempts",
    "failure_class", "reward", "truncated", "empty", "answer", "file", "line",
})  # fmt: skip

Named = tuple[str, Callable[[], Column]]
Stamps = list[list[int | str]]
"""Files, each by its name, size, times of change and inode; by its name if missing."""


class _Field(msgspec.Struct, frozen=True, array_like=True):
    """A number column of the records, and the column that it is written to."""

    source: str
    name: str
    column: str
    wide: dict[str, int] = {}


class Copies(msgspec.Struct, frozen=True):
    """Records that were left out, since their rollout has an earlier one."""

    number: int = 0
    places: list[tuple[int, int]] = []
    """File and line of the first of them."""


class _Head(msgspec.Struct, frozen=True):
    """What the file says of itself."""

    version: int
    sources: list[SourceMark]
    stamps: Stamps
    """What the plan and the failures were when they were read."""
    outputs: Stamps
    """What the files of the profile were when they had been written."""
    has_replies: bool
    indices: tuple[str, str]
    """How task and rollout indices are written."""
    layouts: list[tuple[list[str], list[str]]]
    fields: list[_Field]
    components: list[_Field]
    strays: dict[str, str]
    copies: Copies


class RunRows(NamedTuple):
    """A run, ready to be written."""

    plan: PlanColumns
    records: RecordColumns
    """In key order."""
    matching: Matching
    table: RolloutTable
    copies: Copies


class StoredRecords(NamedTuple):
    """The records of an earlier profile."""

    records: RecordColumns
    """In key order."""
    sources: list[SourceMark]
    stamps: Stamps
    outputs: Stamps
    has_replies: bool
    copies: Copies


class UnusableError(Exception):
    """The columns cannot be used; says why."""


# Writing


def write_rollout_metrics(
    path: Path,
    rows: RunRows,
    sources: Sequence[SourceMark],
    stamps: Stamps,
    outputs: Stamps,
) -> None:
    """Write a run's columns, whole or not at all."""
    records = rows.records
    fields = _fields(records)
    taken = _PLAIN_NAMES.union(field.column for field in fields)
    components = _named(taken, "reward_components/", records.components)
    head = _Head(
        version=VERSION,
        sources=list(sources),
        stamps=stamps,
        outputs=outputs,
        has_replies=records.has_replies and len(records) > 0,
        indices=(_index_form(rows.table.tasks), _index_form(rows.table.rollout)),
        layouts=[(list(layout.own), list(layout.usage)) for layout in records.layouts],
        fields=[_with_wide(rows, field) for field in fields],
        components=components,
        copies=rows.copies,
        strays={str(row): name for row, name in _by_table_row(rows, records.strays)},
    )
    columns = [*_plain_columns(rows, head), *_own_columns(rows, head)]
    metadata = {_KEY: msgspec.json.encode(head)}
    write_parquet(path, columns, len(rows.table), metadata)


def _fields(records: RecordColumns) -> list[_Field]:
    """Name the columns of the numbers; one that another hides comes with a prefix."""
    usage = _with_numbers(records.usage)
    own = _with_numbers(records.own)
    shown = {name: c for name, c in own.items() if name not in records.usage}
    shown.pop(wire.REWARD, None)
    hidden = {name: c for name, c in own.items() if name not in shown}
    named = _named(_PLAIN_NAMES, "", {**shown, **usage})
    taken = _PLAIN_NAMES.union(field.column for field in named)
    sourced = [
        _Field(_USAGE if field.name in usage else _OWN, field.name, field.column)
        for field in named
    ]
    plain = _named(taken, "_own/", hidden)
    rest = {name: c for name, c in records.usage.items() if name not in usage}
    unseen = [_Field(_USAGE, name, "") for name in rest if name in own]
    # A member that is no number gives its place to the usage's number of that name.
    placed = {wire.REWARD, *records.usage}
    unseen += [
        _Field(_OWN, name, "")
        for name in records.own
        if name in placed and name not in own
    ]
    return [*sourced, *plain, *unseen]


def _with_numbers(columns: Mapping[str, NumberColumn]) -> dict[str, NumberColumn]:
    return {name: column for name, column in columns.items() if column.has_numbers}


def _named(
    taken: Iterable[str], prefix: str, columns: Mapping[str, NumberColumn]
) -> list[_Field]:
    """Give each column a name of its own."""
    used = set(taken)
    found = []
    for name in columns:
        column = prefix + name
        while (
            not column
            or column in used
            or column.startswith("_") != prefix.startswith("_")
        ):
            column = f"metric/{column}"
        used.add(column)
        found.append(_Field(_OWN, name, column))
    return found


def _number_column(records: RecordColumns, field: _Field) -> NumberColumn:
    columns = records.own if field.source == _OWN else records.usage
    return columns[field.name]


def _with_wide(rows: RunRows, field: _Field) -> _Field:
    column = _number_column(rows.records, field)
    if not column.wide:
        return field
    wide = {str(row): value for row, value in _by_table_row(rows, column.wide)}
    return _Field(field.source, field.name, field.column, wide)


def _by_table_row(
    rows: RunRows, sparse: Mapping[int, Any]
) -> Iterator[tuple[int, Any]]:
    """Yield entries of some records by their row in the table."""
    if not sparse:
        return
    record = 0
    for row, has_record in enumerate(rows.matching.has_record):
        if has_record:
            if record in sparse:
                yield row, sparse[record]
            record += 1


def _index_form(indices: Sequence[Any]) -> str:
    kinds = set(map(type, indices))
    low, high = INT64
    if kinds <= {int} and (not kinds or low <= min(indices) <= max(indices) <= high):
        return _INT
    return _TEXT if kinds == {str} else _JSON


def _index_column(indices: Sequence[Any], form: str) -> Column:
    if form == _INT:
        return Numbers(array("q", indices))
    if form == _TEXT:
        return _texts([index.encode("utf-8", "replace") for index in indices])
    return _texts(
        [
            orjson.dumps(index) if isinstance(index, str) else str(index).encode()
            for index in indices
        ]
    )


def _texts(values: Iterable[bytes | None], *, is_text: bool = True) -> Texts:
    values = list(values)
    known = {value: code for code, value in enumerate(dict.fromkeys(values))}
    codes = array("I", map(known.__getitem__, values))
    if None in known and known[None] != len(known) - 1:
        absent = known.pop(None)
        last = len(known)
        codes = array("I", [_after(code, absent, last) for code in codes])
        known[None] = last
    return Texts(codes, list(known), is_text)


def _after(code: int, absent: int, last: int) -> int:
    """Return a code after nothing was moved to the last place."""
    return last if code == absent else code - (code > absent)


def _plain_columns(rows: RunRows, head: _Head) -> Iterator[Named]:
    """Yield the columns for people."""
    plan, records, matching, table, _ = rows
    has_record = matching.has_record
    tasks = [table.tasks[task] for task in table.task]
    task_form, rollout_form = head.indices
    yield "task_index", lambda: _index_column(tasks, task_form)
    yield "rollout_index", lambda: _index_column(table.rollout, rollout_form)
    agents = [name.encode() for name in table.agents]
    yield "agent", lambda: Texts(array("I", table.agent), agents)
    yield "label", lambda: _labels(plan, matching)
    yield "status", lambda: Texts(array("I", iter(table.status)), _STATUS)
    masked = bytes(placed(records.masked, has_record, _NO_RECORD))
    yield "masked", lambda: Booleans(masked)
    yield "attempts", lambda: Numbers(table.attempts)
    yield "failure_class", lambda: _failure_classes(table)
    is_scored = bytes(table.status).translate(_IS_SCORED)
    yield "reward", lambda: Numbers(table.reward, is_scored)
    for field in head.fields:
        if field.column:
            column = _number_column(records, field)
            yield field.column, lambda column=column: _numbers(column, has_record)  # type: ignore[misc]
    if head.has_replies:
        yield from _reply_columns(rows, head)
    names = [mark.name.encode("utf-8", "replace") for mark in head.sources]
    # As wide as the number of files, which stands for none of them.
    files = array("I", placed(array("I", records.file), has_record, len(names)))
    yield "file", lambda: Texts(files, [*names, None])
    lines = array("q", placed(records.line, has_record, 0))
    yield "line", lambda: Numbers(lines, has_record)


_IS_SCORED = bytes((1,)) + bytes(255)


def _reply_columns(rows: RunRows, head: _Head) -> Iterator[Named]:
    records, has_record = rows.records, rows.matching.has_record
    truncated = bytes(placed(records.truncated, has_record, _NO_RECORD))
    yield "truncated", lambda: Booleans(truncated)
    empty = bytes(placed(records.empty, has_record, _NO_RECORD))
    yield "empty", lambda: Booleans(empty)
    answer = array("q", placed(records.answer, has_record, 0))
    yield "answer", lambda: Numbers(answer, bytes(map(bool, answer)))
    for field in head.components:
        column = records.components[field.name]
        yield field.column, lambda column=column: _numbers(column, has_record)  # type: ignore[misc]


def _labels(plan: PlanColumns, matching: Matching) -> Texts:
    labels = run_labels(plan.runners)
    by_runner = [
        None if key is None else labels[key].encode() for _, key in plan.runners
    ]
    return _texts([by_runner[plan.runner[row]] for row in matching.plan_order])


def _failure_classes(table: RolloutTable) -> Texts:
    classes = table.failure_class
    return _texts(
        [
            classes[row].encode("utf-8", "replace") if row in classes else None
            for row in range(len(table))
        ]
    )


def _numbers(column: NumberColumn, has_record: bytes) -> Numbers:
    present = bytes(column.kinds).translate(IS_NUMBER)
    if 0 not in has_record:
        return Numbers(column.values, present)
    return Numbers(
        array(column.values.typecode, placed(column.values, has_record, 0)),
        bytes(placed(present, has_record, 0)),
    )


def _own_columns(rows: RunRows, head: _Head) -> Iterator[Named]:
    """Yield the columns that keep a profile exact."""
    records, has_record = rows.records, rows.matching.has_record
    yield "_shape", lambda: _shapes(records, head.fields, has_record)
    if (
        records.raw_rewards
        or OTHER in records.own.get(wire.REWARD, NumberColumn()).kinds
    ):
        raw = [
            None if value is None else _raw_text(value)
            for value in map(
                records.raw_rewards.get, range(len(records)), repeat(NotFinite.INFINITE)
            )
        ]
        kinds = records.own[wire.REWARD].kinds
        raw = [
            text if kind == OTHER else None
            for text, kind in zip(raw, kinds, strict=True)
        ]
        yield "_raw_reward", lambda: _texts(placed(raw, has_record, None))


def _raw_text(value: object) -> bytes:
    if isinstance(value, NotFinite):
        return value.value.encode()
    return orjson.dumps(value)


def _shapes(
    records: RecordColumns, fields: Sequence[_Field], has_record: bytes
) -> Texts:
    """Return each record's layout and the kinds of its numbers, as bytes."""
    columns = [_number_column(records, field) for field in fields]
    only = [column.only_kind for column in columns]
    varied = [c.kinds for c, kind in zip(columns, only, strict=True) if kind is None]
    shapes = list(zip(records.layout, *varied, strict=True))
    known = {shape: code for code, shape in enumerate(dict.fromkeys(shapes))}
    codes = list(map(known.__getitem__, shapes))
    texts: list[bytes | None] = []
    for layout, *kinds in known:
        each = iter(kinds)
        spelled = bytes(next(each) if kind is None else kind for kind in only)
        texts.append(layout.to_bytes(_LAYOUT_BYTES, "little") + spelled)
    absent = len(texts)
    return Texts(
        array("I", placed(codes, has_record, absent)), [*texts, None], is_text=False
    )


# Reading


def read_rollout_metrics(path: Path) -> StoredRecords:
    """Read the records of an earlier profile.

    Raises:
        UnusableError: they are damaged, foreign, of another version, or cannot be read.
    """
    try:
        table = read_parquet(path)
        version = msgspec.json.decode(table.metadata[_KEY], type=dict[str, Any])
        if version.get("version") != VERSION:
            raise UnusableError("was written by another version")
        head = msgspec.json.decode(table.metadata[_KEY], type=_Head)
        records = _records(table, head)
    except (ParquetError, msgspec.MsgspecError, LookupError, ValueError) as error:
        raise UnusableError(f"is damaged or foreign ({error})") from error
    except OSError as error:
        raise UnusableError(f"cannot be read ({error.strerror})") from error
    return StoredRecords(
        records,
        head.sources,
        head.stamps,
        head.outputs,
        head.has_replies,
        head.copies,
    )


def _records(table: Table, head: _Head) -> RecordColumns:
    columns: Any = table.columns
    task_form, rollout_form = head.indices
    shapes, files = columns["_shape"], columns["file"]
    kinds_of = _kinds(shapes)
    records = RecordColumns(
        task=_indices(columns["task_index"], task_form),
        rollout=_indices(columns["rollout_index"], rollout_form),
        file=array("I", files.codes),
        line=array("Q", columns["line"].values),
        masked=bytearray(columns["masked"].values.translate(_IS_TRUE)),
        layout=array("I", map(_layouts(shapes).__getitem__, shapes.codes)),
        layouts=[Layout(tuple(own), tuple(usage)) for own, usage in head.layouts],
        strays={int(row): name for row, name in head.strays.items()},
    )
    for at, field in enumerate(head.fields):
        target = records.own if field.source == _OWN else records.usage
        kinds = bytearray(kinds_of(at))
        values = (
            columns[field.column].values
            if field.column
            else array("q", bytes(8 * len(kinds)))
        )
        wide = {int(row): value for row, value in field.wide.items()}
        target[field.name] = NumberColumn(values, kinds, wide)
    _note_raw_rewards(records, columns.get("_raw_reward"))
    if head.has_replies:
        _add_replies(records, columns, head)
    present = columns["line"].present
    if present is not None:
        records.arrange([row for row, has in enumerate(present) if has])
    return records


_IS_TRUE = bytes(1 if value == 1 else 0 for value in range(256))


def _layouts(shapes: Texts) -> list[int]:
    return [
        0 if text is None else int.from_bytes(text[:_LAYOUT_BYTES], "little")
        for text in shapes.texts
    ]


def _kinds(shapes: Texts) -> Callable[[int], bytes]:
    """Return a function that gives the kinds of a field in every row."""
    texts = [
        bytes(_LAYOUT_BYTES) + bytes(255) if t is None else t for t in shapes.texts
    ]
    if len(texts) <= 256:  # noqa: PLR2004 - what a byte tells apart
        codes = array("B", shapes.codes).tobytes()

        def translated(field: int) -> bytes:
            kinds = bytes(text[_LAYOUT_BYTES + field] for text in texts)
            return codes.translate(kinds.ljust(256, b"\0"))

        return translated

    def looked_up(field: int) -> bytes:
        kinds = [text[_LAYOUT_BYTES + field] for text in texts]
        return bytes(map(kinds.__getitem__, shapes.codes))

    return looked_up


def _indices(column: Any, form: str) -> Any:  # noqa: ANN401 - ints or texts
    if form == _INT:
        return column.values
    texts = [text or b"" for text in column.texts]
    read = [
        text.decode() if form == _TEXT else msgspec.json.decode(text) for text in texts
    ]
    return [read[code] for code in column.codes]


def _note_raw_rewards(records: RecordColumns, column: Texts | None) -> None:
    reward = records.own.get(wire.REWARD)
    if reward is None:
        return
    spellings = {member.value.encode(): member for member in NotFinite}
    for row, kind in enumerate(reward.kinds):
        if kind == OTHER:
            text = None if column is None else column.texts[column.codes[row]]
            records.raw_rewards[row] = (
                None if text is None else spellings.get(text) or orjson.loads(text)
            )


def _add_replies(records: RecordColumns, columns: Any, head: _Head) -> None:  # noqa: ANN401
    records.truncated = bytearray(columns["truncated"].values)
    records.empty = bytearray(columns["empty"].values)
    records.answer = columns["answer"].values
    for field in head.components:
        numbers = columns[field.column]
        kind = 1 if numbers.values.typecode == "d" else 2
        present = numbers.present
        kinds = bytes((kind,)) * len(numbers.values)
        if present is not None:
            kinds = present.translate(bytes((0, kind)) + bytes(254))
        records.components[field.name] = NumberColumn(numbers.values, bytearray(kinds))
