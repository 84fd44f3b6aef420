"""One numeric column of the records: compact, and exact to the last digit.

Whole numbers stay whole numbers and floats stay floats, since Gym's files tell them
apart. A value takes eight bytes and a kind of one byte, whatever its JSON was.
"""

from array import array
from collections.abc import Hashable, Iterable, Sequence
from itertools import compress, repeat
from operator import eq, itemgetter
from struct import error as StructError  # noqa: N812 - it is a class
from struct import pack
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=Hashable)
Number = int | float

ABSENT = 0
"""The record does not have the member."""
FLOAT = 1
INT = 2
BOOL = 3
OTHER = 4
"""The record has the member, and it is no number: null, text, a list, an object."""

_KINDS = {float: FLOAT, int: INT, bool: BOOL}
INT64 = (-(2**63), 2**63 - 1)
"""Least and largest whole number of 64 bits with a sign."""
UINT64_MAX = 2**64 - 1
_FLOAT_EXACT = (-(2**53), 2**53)
_FEW = 8
IS_NUMBER = bytes(1 if kind in {FLOAT, INT, BOOL} else 0 for kind in range(256))
"""Translates kinds into 1 for a number and 0 for none."""


def as_read(value: int) -> Number | None:
    """Return a whole number as Gym's parser reads it.

    Beyond 64 bits it becomes a float; beyond every float, nothing.
    """
    if INT64[0] <= value <= UINT64_MAX:
        return value
    try:
        return float(value)
    except OverflowError:
        return None


class NumberColumn(msgspec.Struct):
    """The values of one member, by row; rows past the end do not have it."""

    values: "array[Any]" = msgspec.field(default_factory=lambda: array("q"))
    """"q" while every number is whole, else "d"; 0 where there is none."""
    kinds: bytearray = msgspec.field(default_factory=bytearray)
    wide: dict[int, int] = msgspec.field(default_factory=dict)
    """Whole numbers that `values` cannot hold exactly, by row."""

    def extend(self, row: int, found: Sequence[Any]) -> None:
        """Put `found` into the rows from `row` on."""
        self.pad(row)
        types = set(map(type, found))
        if not types & _KINDS.keys():
            self.values.frombytes(bytes(8 * len(found)))
            self.kinds += bytes((OTHER,)) * len(found)
            return
        if len(types) == 1:
            kinds = bytes((_KINDS[type(found[0])],)) * len(found)
        else:
            kinds = bytes([_KINDS.get(type(value), OTHER) for value in found])
        if OTHER in kinds:
            found = [
                0 if kind == OTHER else value
                for value, kind in zip(found, kinds, strict=True)
            ]
        if float in types:
            self._to_floats()
        try:
            values = self._packed(found, has_whole=int in types)
        except OverflowError:
            self._extend_wide(found, kinds)
            return
        self.values.frombytes(values)
        self.kinds += kinds

    def _packed(self, found: Sequence[Number], *, has_whole: bool) -> bytes:
        """Return values as this column keeps them.

        Raises:
            OverflowError: one of them is a whole number that it cannot hold exactly.
        """
        typecode = self.values.typecode
        if typecode == "d" and has_whole and not self._holds(found):
            raise OverflowError
        try:
            return packed(typecode, found)
        except StructError as error:
            raise OverflowError from error

    def _holds(self, found: Sequence[Number]) -> bool:
        low, high = INT64 if self.values.typecode == "q" else _FLOAT_EXACT
        whole: Sequence[Number] = found
        if float in map(type, found):
            whole = [value for value in found if type(value) is not float]
        return low <= min(whole) and max(whole) <= high

    def _extend_wide(self, found: Iterable[Number], kinds: bytes) -> None:
        for value, kind in zip(found, kinds, strict=True):
            read = value if kind != INT else as_read(int(value))
            self._append(0 if read is None else read, OTHER if read is None else kind)

    def _append(self, value: Number, kind: int) -> None:
        row = len(self.kinds)
        if type(value) is float:
            self._to_floats()
            kind = FLOAT
        elif not self._holds([value]):
            self.wide[row] = int(value)
            value = 0 if self.values.typecode == "q" else float(value)
        self.values.append(value)
        self.kinds.append(kind)

    def pad(self, rows: int) -> None:
        """Have `rows` rows: the new ones do not have the member."""
        if (lacking := rows - len(self.kinds)) > 0:
            self.values.frombytes(bytes(8 * lacking))
            self.kinds += bytes(lacking)

    def _to_floats(self) -> None:
        if self.values.typecode == "d":
            return
        low, high = _FLOAT_EXACT
        if self.values and not (low <= min(self.values) and max(self.values) <= high):
            self.wide |= {
                row: value
                for row, value in enumerate(self.values)
                if not low <= value <= high
            }
        self.values = array("d", self.values)
        for row, value in self.wide.items():
            self.values[row] = float(value)

    @property
    def has_numbers(self) -> bool:
        """Whether any row has a number."""
        return any(kind in self.kinds for kind in (FLOAT, INT, BOOL))

    def at(self, rows: Sequence[int]) -> list[Number | None]:
        """Return the numbers of some rows; None where there is none."""
        kinds = bytes(gathered(self.kinds, rows))
        values: list[Any] = list(gathered(self.values, rows))
        if self.values.typecode == "d" and (INT in kinds or BOOL in kinds):
            values = [
                value if kind == FLOAT else int(value)
                for value, kind in zip(values, kinds, strict=True)
            ]
        if ABSENT in kinds or OTHER in kinds:
            numbers = kinds.translate(IS_NUMBER)
            values = [v if n else None for v, n in zip(values, numbers, strict=True)]
        if self.wide:
            wide = self.wide
            values = [
                wide.get(row, value) for row, value in zip(rows, values, strict=True)
            ]
        return values

    @property
    def only_kind(self) -> int | None:
        """The kind that all rows have; None where they differ, or there are none."""
        kinds = self.kinds
        return kinds[0] if kinds and kinds.count(kinds[0]) == len(kinds) else None

    def floats_at(self, rows: Sequence[int]) -> list[float | None]:
        """Return the numbers of some rows as floats; None where there is none."""
        kinds = bytes(gathered(self.kinds, rows))
        values = list(gathered(self.values, rows))
        if self.values.typecode == "q":
            if self.wide:  # which "q" holds as 0, and "d" as the nearest float
                return [v if v is None else float(v) for v in self.at(rows)]
            values = list(map(float, values))
        if ABSENT in kinds or OTHER in kinds:
            numbers = kinds.translate(IS_NUMBER)
            return [v if n else None for v, n in zip(values, numbers, strict=True)]
        return values

    def arrange(self, order: Sequence[int]) -> None:
        """Put the rows in another order, or keep some of them."""
        if (only := self.only_kind) is None:
            self.kinds = bytearray(gathered(self.kinds, order))
        else:
            self.kinds = bytearray((only,)) * len(order)
        self.values = rearranged(self.values, order)
        if wide := self.wide:
            self.wide = {at: wide[row] for at, row in enumerate(order) if row in wide}

    def kinds_at(self, rows: Sequence[int]) -> bytes:
        """Return the kinds of some rows."""
        return bytes(gathered(self.kinds, rows))


def packed(typecode: str, values: Sequence[Any]) -> bytes:
    """Return numbers as an array of them lies in memory; faster than to extend one."""
    return pack(f"{len(values)}{typecode}", *values)


def rearranged(column: "array[Any]", order: Sequence[int]) -> "array[Any]":
    """Return a column in another order, or some of it."""
    found = array(column.typecode)
    found.frombytes(packed(column.typecode, gathered(column, order)))
    return found


def is_constant(values: Sequence[Any]) -> bool:
    """Say whether all values are equal; there is at least one."""
    return values.count(values[0]) == len(values)


def positions_of(values: Sequence[T]) -> dict[T, list[int]]:
    """Return where each distinct value stands, in order of first appearance."""
    distinct = dict.fromkeys(values)
    if len(distinct) <= _FEW:
        every = range(len(values))
        return {
            value: list(compress(every, map(eq, values, repeat(value))))
            for value in distinct
        }
    found: dict[T, list[int]] = {}
    for at, value in enumerate(values):
        found.setdefault(value, []).append(at)
    return found


def gathered(column: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    """Return the entries of some rows, in their order."""
    if isinstance(rows, range):
        return column[rows.start : rows.stop : rows.step]
    if len(rows) > 1:
        return itemgetter(*rows)(column)  # type: ignore[no-any-return]
    return [column[row] for row in rows]
