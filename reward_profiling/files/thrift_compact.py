"""Thrift's compact protocol, as far as Parquet's metadata needs it.

A struct is a mapping of field number to value; an empty one is written as such.
Source: Apache Thrift, "Thrift compact protocol encoding".
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_TRUE, _FALSE = 1, 2
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_INTEGERS = frozenset({3, 4, _I32, _I64})
_SHORT_LIST = 15

Value = "int | bytes | Wide | Sequence[Value] | Mapping[int, Value]"
Struct = Mapping[int, object]


class Wide(NamedTuple):
    """A whole number of 64 bits; a plain `int` is written as one of 32."""

    number: int


class ThriftError(ValueError):
    """Bytes that are no compact Thrift."""


def encode_struct(struct: Struct) -> bytes:
    """Return a struct's bytes; its fields must be in ascending order."""
    parts = bytearray()
    last = 0
    for number, value in struct.items():
        kind = _kind_of(value)
        step = number - last
        if not 1 <= step <= _SHORT_LIST:
            raise ThriftError(f"field {number} does not follow field {last}")
        parts.append(step << 4 | kind)
        parts += _encode(value)
        last = number
    parts.append(0)
    return bytes(parts)


def _kind_of(value: object) -> int:
    if isinstance(value, Wide):
        return _I64
    if isinstance(value, int):
        return _I32
    if isinstance(value, bytes):
        return _BINARY
    return _STRUCT if isinstance(value, Mapping) else _LIST


def _encode(value: object) -> bytes:
    if isinstance(value, Wide):
        return varint(_zigzag(value.number))
    if isinstance(value, int):
        return varint(_zigzag(value))
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, Mapping):
        return encode_struct(value)
    assert isinstance(value, Sequence)  # noqa: S101 - the kinds end here
    kind = _kind_of(value[0]) if value else _STRUCT
    count = len(value)
    if count < _SHORT_LIST:
        head = bytes((count << 4 | kind,))
    else:
        head = bytes((_SHORT_LIST << 4 | kind,)) + varint(count)
    return head + b"".join(map(_encode, value))


def varint(number: int) -> bytes:
    """Return a number of at least 0 in groups of seven bits, the lowest first."""
    parts = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


class Reader:
    """Reads values from bytes, one after another.

    Raises:
        ThriftError: the bytes end too early, or are of a kind that is not known.
    """

    def __init__(self, data: bytes, place: int = 0) -> None:
        self._data = data
        self.place = place
        """Where the next byte is read."""

    def varint(self) -> int:
        """Read a number of at least 0."""
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the last group
                return found
            shift += 7

    def struct(self) -> dict[int, object]:
        """Read a struct: its values by field number."""
        found: dict[int, object] = {}
        number = 0
        while head := self._byte():
            step = head >> 4
            number = number + step if step else self._whole()
            found[number] = self._value(head & 0x0F)
        return found

    def _byte(self) -> int:
        if self.place >= len(self._data):
            raise ThriftError("ends too early")
        self.place += 1
        return self._data[self.place - 1]

    def _whole(self) -> int:
        coded = self.varint()
        return coded >> 1 if not coded & 1 else -(coded >> 1) - 1

    def _value(self, kind: int) -> object:
        if kind in {_TRUE, _FALSE}:
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._whole()
        if kind == _BINARY:
            return self._binary()
        if kind == _STRUCT:
            return self.struct()
        if kind == _LIST:
            return self._list()
        raise ThriftError(f"has a value of the unknown kind {kind}")

    def _binary(self) -> bytes:
        count = self.varint()
        start, self.place = self.place, self.place + count
        if self.place > len(self._data):
            raise ThriftError("ends too early")
        return self._data[start : self.place]

    def _list(self) -> list[object]:
        head = self._byte()
        count = head >> 4
        if count == _SHORT_LIST:
            count = self.varint()
        return [self._value(head & 0x0F) for _ in range(count)]
