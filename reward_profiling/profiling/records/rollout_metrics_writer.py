"""Writes a run to `<stem>_rollout_metrics.parquet`, a part of its rows at a time."""

from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import orjson
from arro3.core import Array

from reward_profiling import wire
from reward_profiling.files.parquet import (
    ROWS_AT_ONCE,
    TEXT,
    booleans,
    numbers,
    texts,
    write_parquet,
)
from reward_profiling.files.source_marks import Glimpses, SourceMark
from reward_profiling.numerics.number_column import (
    ABSENT,
    INT64,
    IS_NUMBER,
    OTHER,
    NumberColumn,
    gathered,
)
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.matching import Matching, placed
from reward_profiling.profiling.records.record_columns import (
    NotFinite,
    RecordColumns,
)
from reward_profiling.profiling.records.record_shapes import (
    Field,
    find_shapes,
    name_fields,
)
from reward_profiling.profiling.records.rollout_metrics import (
    COLUMNS,
    Head,
)
from reward_profiling.profiling.records.stored_records import marks_of
from reward_profiling.profiling.rollout_table import EMPTY, RolloutStatus
from reward_profiling.profiling.summary.run_labels import run_labels

_STATUSES = [status.name.lower() for status in RolloutStatus]
_IS_SCORED = bytes((1,)) + bytes(255)
_NO_RECORD = 2
_TAKEN_NAMES = frozenset(c.name for c in COLUMNS if "<" not in c.name)


class _Part(NamedTuple):
    """Rows that are written at once."""

    rows: slice
    records: slice
    """Which records these have."""
    has_record: bytes
    """For each row, whether it has one: the next one."""

    def placed(self, values: Any, unknown: Any) -> Any:  # noqa: ANN401
        """Give every row its record's value; `unknown` to one without a record."""
        return placed(values[self.records], self.has_record, unknown)


def write_rollout_metrics(run: MatchedRun, outputs: Glimpses) -> None:
    """Write a run's columns, completely or not at all.

    `outputs` is what the files of the profile were when they had been written.

    Raises:
        OutputWriteError: the disk does not take it; what was there stays.
    """
    path, records = run.sources.files.rollout_metrics, run.records
    fields = name_fields(records, _TAKEN_NAMES)
    shape_numbers, shapes = find_shapes(records, fields)
    head = Head(
        sources=marks_of(path, run.sources.rollouts, run.found),
        inputs=run.inputs,
        outputs=outputs,
        duplicates=run.duplicates,
        has_replies=records.has_replies and len(records) > 0,
        index_forms=(_index_form(run.table.tasks), _index_form(run.table.rollout)),
        layouts=records.layouts,
        fields=[_with_wide(run, field) for field in fields],
        shapes=shapes,
        strays=_by_table_row(run, records.strays),
    )
    parts = (_columns(run, head, shape_numbers, p) for p in _parts(run.matching))
    write_parquet(path, parts, msgspec.json.encode(head).decode())


def _parts(matching: Matching) -> Iterator[_Part]:
    """Yield the rows in parts, at least one."""
    first = 0
    for start in range(0, max(len(matching.has_record), 1), ROWS_AT_ONCE):
        has_record = matching.has_record[start : start + ROWS_AT_ONCE]
        last = first + has_record.count(1)
        rows = slice(start, start + len(has_record))
        yield _Part(rows, slice(first, last), has_record)
        first = last


# What it says of itself


def _with_wide(run: MatchedRun, field: Field) -> Field:
    wide = _by_table_row(run, field.of(run.records).wide)
    return msgspec.structs.replace(field, wide=wide)


def _by_table_row(run: MatchedRun, sparse: Mapping[int, Any]) -> dict[int, Any]:
    """Return entries of some records by their row in the table."""
    rows = run.matching.rows_with_record if sparse else ()
    return {rows[record]: value for record, value in sparse.items()}


def _index_form(indices: Sequence[Any]) -> Literal["int", "text", "json"]:
    kinds = set(map(type, indices))
    low, high = INT64
    if kinds <= {int} and (not kinds or low <= min(indices) <= max(indices) <= high):
        return "int"
    return "text" if kinds == {str} else "json"


# The columns, in order


def _columns(
    run: MatchedRun, head: Head, shapes: "array[int]", part: _Part
) -> dict[str, Array]:
    records = run.records
    has_raw = OTHER in _reward_kinds(records)
    return {
        **_planned(run, head, part),
        **_came_of(run, part),
        **_numbers(records, head.fields, ("own", "usage"), part),
        **(_replies(records, head.fields, part) if head.has_replies else {}),
        **_places(records, head.sources, part),
        "_shape": numbers(part.placed(shapes, 0)),
        **({"_raw_reward": _raw_rewards(records, part)} if has_raw else {}),
    }


def _planned(run: MatchedRun, head: Head, part: _Part) -> dict[str, Array]:
    plan, table = run.plan, run.table
    labels = run_labels(plan.runners)
    by_runner = [None if key is None else labels[key] for _, key in plan.runners]
    runners = gathered(plan.runner, run.matching.plan_order[part.rows])
    tasks = [table.tasks[task] for task in table.task[part.rows]]
    return {
        "task_index": _indices(tasks, head.index_forms[0]),
        "rollout_index": _indices(table.rollout[part.rows], head.index_forms[1]),
        "agent": texts(table.agent[part.rows], table.agents),
        "label": texts(array("I", runners), by_runner),
    }


def _came_of(run: MatchedRun, part: _Part) -> dict[str, Array]:
    table, status = run.table, run.table.status[part.rows]
    every = range(part.rows.start, part.rows.stop)
    classes = [table.failure_class.get(row) for row in every]
    return {
        "status": texts(status, _STATUSES),
        "masked": booleans(part.placed(run.records.masked, _NO_RECORD)),
        "attempts": numbers(table.attempts[part.rows]),
        "failure_class": Array(classes, TEXT),
        "reward": numbers(table.reward[part.rows], status.translate(_IS_SCORED)),
    }


def _numbers(
    records: RecordColumns,
    fields: Sequence[Field],
    sources: Container[str],
    part: _Part,
) -> dict[str, Array]:
    return {
        field.column: _number_column(field.of(records), part)
        for field in fields
        if field.column and field.source in sources
    }


def _number_column(column: NumberColumn, part: _Part) -> Array:
    kinds = part.placed(column.kinds, ABSENT)
    return numbers(part.placed(column.values, 0), kinds.translate(IS_NUMBER))


def _replies(
    records: RecordColumns, fields: Sequence[Field], part: _Part
) -> dict[str, Array]:
    answers = part.placed(records.answer, 0)
    return {
        "truncated": booleans(part.placed(records.truncated, _NO_RECORD)),
        "empty": booleans(part.placed(records.empty.translate(EMPTY), _NO_RECORD)),
        "has_error": booleans(part.placed(records.has_error, _NO_RECORD)),
        "answer": numbers(answers, bytes(map(bool, answers))),
        **_numbers(records, fields, ("components",), part),
    }


def _places(
    records: RecordColumns, sources: Sequence[SourceMark], part: _Part
) -> dict[str, Array]:
    names = [*(mark.name for mark in sources), None]
    return {
        "file": texts(part.placed(records.file, len(sources)), names),
        "line": numbers(part.placed(records.line, 0), part.has_record),
    }


def _raw_rewards(records: RecordColumns, part: _Part) -> Array:
    kinds = _reward_kinds(records)[part.records]
    rows = range(part.records.start, part.records.stop)
    raw = [
        _raw_text(records.raw_rewards.get(row, NotFinite.INFINITE))
        if kind == OTHER
        else None
        for row, kind in zip(rows, kinds, strict=True)
    ]
    return Array(placed(raw, part.has_record, None), TEXT)


def _reward_kinds(records: RecordColumns) -> bytearray:
    column = records.own.get(wire.REWARD)
    return bytearray(len(records)) if column is None else column.kinds


def _raw_text(value: object) -> str | None:
    if value is None or isinstance(value, NotFinite):
        return None if value is None else value.value
    return orjson.dumps(value).decode()


def _indices(indices: Sequence[Any], form: str) -> Array:
    if form == "int":
        return numbers(array("q", indices))
    if form == "json":
        indices = [
            orjson.dumps(i).decode() if isinstance(i, str) else str(i) for i in indices
        ]
    return Array(indices, TEXT)
