"""What is kept of a record beside its numbers: what these are, and all that is small.

A field is a column of numbers; the shape of a record says of which kind its number in
each of them is. There are few shapes, however many records there are.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from reward_profiling import wire
from reward_profiling.numerics.number_column import NumberColumn, is_constant
from reward_profiling.profiling.records.record_columns import RecordColumns


class Field(msgspec.Struct, frozen=True, array_like=True):
    """A number column of the records, and the column that it is written to."""

    source: Literal["own", "usage", "components"]
    """Which of the records' members it is of."""
    name: str
    column: str
    """Empty where it has no number to write."""
    wide: dict[int, int] = {}
    """Whole numbers that the column cannot hold exactly, by row of the table."""

    def of(self, records: RecordColumns) -> NumberColumn:
        """Return the records' column."""
        columns: dict[str, NumberColumn] = getattr(records, self.source)
        return columns[self.name]


class Shape(NamedTuple):
    """All that is small about a record."""

    file: int
    layout: int
    masked: int
    truncated: int
    empty: int
    has_answer: int
    has_error: int
    kinds: tuple[int, ...]
    """The kind of each field's number."""


def name_fields(records: RecordColumns, taken: Collection[str]) -> list[Field]:
    """Name the columns of the numbers, beside names that are taken.

    Of a number that another of that name hides, the name comes with a prefix.
    """
    own, usage = _with_numbers(records.own), _with_numbers(records.usage)
    hidden = [name for name in own if name == wire.REWARD or name in records.usage]
    used = set(taken)
    return [
        *(Field("own", n, _free_name(n, used)) for n in own if n not in hidden),
        *(Field("usage", n, _free_name(n, used)) for n in usage),
        *(Field("own", n, f"_own/{n}") for n in hidden),
        # A member that is no number gives its place to the other's number of that name.
        *(Field("usage", n, "") for n in records.usage if n in own and n not in usage),
        *(
            Field("own", n, "")
            for n in records.own
            if n not in own and (n == wire.REWARD or n in records.usage)
        ),
        *(
            Field("components", n, _free_name(f"reward_components/{n}", used))
            for n in records.components
        ),
    ]


def _with_numbers(columns: Mapping[str, NumberColumn]) -> list[str]:
    return [name for name, column in columns.items() if column.has_numbers]


def _free_name(name: str, used: set[str]) -> str:
    name = name.replace("\0", "\N{SYMBOL FOR NULL}")  # Arrow's names end at a NUL
    while not name or name in used or name.startswith("_"):
        name = f"metric/{name}"
    used.add(name)
    return name


def find_shapes(
    records: RecordColumns, fields: Sequence[Field]
) -> "tuple[array[int], list[Shape]]":
    """Return the number of each record's shape, from 1, and the shapes in order."""
    told: list[Sequence[int]] = [records.file, records.layout, records.masked]
    if records.has_replies:
        answered = bytes(map(bool, records.answer))
        told += [records.truncated, records.empty, answered, records.has_error]
    else:
        told += [bytes(len(records))] * 4
    columns = [*told, *(field.of(records).kinds for field in fields)]
    # Skip columns that are the same in all rows, but keep one to iterate over.
    only = [None, *map(_only_value, columns[1:])]
    varied = [c for c, one in zip(columns, only, strict=True) if one is None]
    known: dict[tuple[int, ...], int] = {}
    codes = array(
        "q", [known.setdefault(s, len(known) + 1) for s in zip(*varied, strict=True)]
    )
    shapes = []
    for shape in known:
        each = iter(shape)
        values = [next(each) if one is None else one for one in only]
        shapes.append(Shape._make([*values[: len(told)], tuple(values[len(told) :])]))
    return codes, shapes


def _only_value(column: Sequence[int]) -> int | None:
    return column[0] if len(column) and is_constant(column) else None
