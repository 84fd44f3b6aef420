"""Parquet files of plain columns: written and read without pyarrow.

Importing pyarrow takes longer, and more memory, than profiling 10,000 rollouts. What
is written is what every reader knows: one optional column a name, plain or dictionary
encoding, no compression, data pages of version 1. What is read is only what is written
here. The four bytes after the magic are a checksum of all that follows.

Source: Apache Parquet format 2.9, "Encodings" and `parquet.thrift`.
"""

import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import ne
from pathlib import Path
from sys import byteorder
from typing import IO, Any, NamedTuple

from reward_profiling.files.json_lines import replace_file
from reward_profiling.files.thrift_compact import (
    Reader,
    ThriftError,
    Wide,
    encode_struct,
    varint,
)

_MAGIC = b"PAR1"
_HEAD_BYTES = 8
_FOOT_BYTES = 8
_BOOLEAN, _INT64, _DOUBLE, _BYTE_ARRAY = 0, 2, 5, 6
_OPTIONAL = 1
_CONVERTED = 6
_DICTIONARY_PLACE = 11
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_TYPECODES = {_INT64: "q", _DOUBLE: "d"}
_CREATOR = b"gym-reward-profiling"


class ParquetError(ValueError):
    """A file that was not written here, or not wholly, or was changed since."""


class Numbers(NamedTuple):
    """A column of numbers."""

    values: "array[Any]"
    """Of type "q" or "d"; what stands where nothing is present does not matter."""
    present: bytes | None = None
    """1 for a row that has a value and 0 for one without; None where all have one."""


class Booleans(NamedTuple):
    """A column of true, false and nothing."""

    values: bytes
    """0, 1, or anything else for nothing."""


class Texts(NamedTuple):
    """A column of few different texts."""

    codes: "array[Any]"
    """Position in `texts`, of type "I", for each row."""
    texts: Sequence[bytes | None]
    """Each text once, as UTF-8; None for nothing, which must come last."""
    is_text: bool = True
    """False for bytes that are no text."""


Column = Numbers | Booleans | Texts


class Table(NamedTuple):
    """What was read."""

    num_rows: int
    columns: dict[str, Column]
    metadata: dict[str, bytes]


def write_parquet(
    path: Path,
    columns: Iterable[tuple[str, Callable[[], Column]]],
    num_rows: int,
    metadata: Mapping[str, bytes],
) -> None:
    """Write a table, whole or not at all; each column is made when its turn comes."""

    def write(file: IO[bytes]) -> None:
        file.write(_MAGIC + bytes(4))
        sums = _Summing(file)
        schema: list[object] = []
        chunks: list[object] = []
        for name, make in columns:
            column = make()
            schema.append(_schema_of(name, column))
            chunks.append(_write_chunk(sums, name, column, num_rows))
        footer = _footer(schema, chunks, num_rows, metadata)
        sums.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        file.seek(len(_MAGIC))
        file.write(sums.checksum.to_bytes(4, "little"))

    replace_file(path, write)


class _Summing:
    """Writes to a file, and keeps the checksum and the place."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0
        self.place = _HEAD_BYTES

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.checksum = zlib.crc32(data, self.checksum)
        self.place += len(data)


def _schema_of(name: str, column: Column) -> dict[int, object]:
    element: dict[int, object] = {
        1: _type_of(column), 3: _OPTIONAL, 4: name.encode("utf-8", "replace"),
    }  # fmt: skip
    if isinstance(column, Texts) and column.is_text:
        element[_CONVERTED] = 0  # UTF8, for readers that know no logical types
        element[10] = {1: {}}  # the logical type STRING
    return element


def _type_of(column: Column) -> int:
    if isinstance(column, Numbers):
        return _INT64 if column.values.typecode == "q" else _DOUBLE
    return _BOOLEAN if isinstance(column, Booleans) else _BYTE_ARRAY


def _write_chunk(
    sums: _Summing, name: str, column: Column, num_rows: int
) -> dict[int, object]:
    """Write a column's pages; return what the footer says of them."""
    start = dictionary = sums.place
    texts: list[Any] = []
    if isinstance(column, Texts):
        texts = list(filter(_is_text, column.texts))
    if texts:
        body = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
        header = {7: {1: len(texts), 2: _PLAIN}}
        _write_page(sums, _DICTIONARY_PAGE, body, header)
    data = sums.place
    encoding = _RLE_DICTIONARY if texts else _PLAIN
    header = {5: {1: num_rows, 2: encoding, 3: _RLE, 4: _RLE}}
    _write_page(sums, _DATA_PAGE, _page_body(column, num_rows), header)
    size = sums.place - start
    described: dict[int, object] = {
        1: _type_of(column),
        2: [encoding, _RLE],
        3: [name.encode("utf-8", "replace")],
        4: 0,
        5: Wide(num_rows),
        6: Wide(size),
        7: Wide(size),
        9: Wide(data),
    }
    if texts:
        described[_DICTIONARY_PLACE] = Wide(dictionary)
    return {2: Wide(start), 3: described}


def _is_text(text: bytes | None) -> bool:
    return text is not None


def _write_page(
    sums: _Summing, kind: int, body: bytes, header: Mapping[int, object]
) -> None:
    sums.write(encode_struct({1: kind, 2: len(body), 3: len(body), **header}))
    sums.write(body)


def _page_body(column: Column, num_rows: int) -> bytes:
    if isinstance(column, Numbers):
        return _levels(column.present, num_rows) + _little(
            column.values, column.present
        )
    if isinstance(column, Booleans):
        shown = column.values.translate(_IS_BOOLEAN)
        bits = bytes(compress(column.values, shown))
        return _levels(shown, num_rows) + _packed(bits)
    if not any(map(_is_text, column.texts)):
        return _levels(bytes(num_rows), num_rows)  # nothing but nothing
    width, typecode = next(
        (w, t) for w, t, most in _WIDTHS if len(column.texts) <= most
    )
    present: bytes | None = None
    codes = column.codes
    if column.texts and column.texts[-1] is None:
        absent = len(column.texts) - 1
        if absent in codes:
            present = bytes(map(ne, codes, repeat(absent)))
            codes = array("I", compress(codes, present))
    packed = array(typecode, codes)
    packed.extend([0] * (-len(packed) % 8))
    run = varint(len(packed) // 8 << 1 | 1) if codes else b""
    body = bytes((width,)) + run + (_little(packed, None) if codes else b"")
    return _levels(present, num_rows) + body


_WIDTHS = ((8, "B", 1 << 8), (16, "H", 1 << 16), (32, "I", 1 << 32))
_IS_BOOLEAN = bytes((1, 1)) + bytes(254)


def _levels(present: bytes | None, num_rows: int) -> bytes:
    """Return the definition levels: which rows have a value."""
    if present is None or 0 not in present:
        levels = varint(num_rows << 1) + b"\x01"
    elif 1 not in present:
        levels = varint(num_rows << 1) + b"\x00"
    else:
        packed = _packed(present)
        levels = varint(len(packed) << 1 | 1) + packed
    return len(levels).to_bytes(4, "little") + levels


def _packed(bits: bytes) -> bytes:
    """Pack bytes of 0 and 1 into bits, the first one lowest."""
    if not bits:
        return b""
    count = -(-len(bits) // 8)
    number = int(bits.translate(_AS_DIGITS)[::-1], 2)
    return number.to_bytes(count, "little")


def _unpacked(packed: bytes, count: int) -> bytes:
    """Unpack bits into bytes of 0 and 1."""
    digits = bin(int.from_bytes(packed, "little") | 1 << 8 * len(packed))[3:]
    return digits[::-1].encode().translate(_AS_BITS)[:count]


_AS_DIGITS = bytes((48, 49)) + bytes(254)
_AS_BITS = bytes(1 if byte == ord("1") else 0 for byte in range(256))


def _little(values: "array[Any]", present: bytes | None) -> bytes:
    if present is not None and 0 in present:
        values = array(values.typecode, compress(values, present))
    if byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _footer(
    schema: Sequence[object],
    chunks: Sequence[object],
    num_rows: int,
    metadata: Mapping[str, bytes],
) -> bytes:
    size = sum(chunk[3][6].number for chunk in chunks)  # type: ignore[index]
    pairs = [{1: key.encode(), 2: value} for key, value in metadata.items()]
    return encode_struct({
        1: 1,
        2: [{4: b"schema", 5: len(schema)}, *schema],
        3: Wide(num_rows),
        4: [{1: list(chunks), 2: Wide(size), 3: Wide(num_rows)}],
        5: pairs,
        6: _CREATOR,
    })  # fmt: skip


def read_parquet(path: Path) -> Table:
    """Read a table that was written here.

    Raises:
        ParquetError: it was not, or not wholly, or was changed since.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if len(data) < _HEAD_BYTES + _FOOT_BYTES or data[:4] != _MAGIC:
        raise ParquetError("is no Parquet file")
    checksum = int.from_bytes(data[len(_MAGIC) : _HEAD_BYTES], "little")
    with memoryview(data) as view:
        if checksum != zlib.crc32(view[_HEAD_BYTES:]):
            raise ParquetError("was changed, or was written by something else")
    size = int.from_bytes(data[-8:-4], "little")
    try:
        return _table(data, Reader(data, len(data) - _FOOT_BYTES - size).struct())
    except (ThriftError, LookupError, TypeError, ValueError) as error:
        raise ParquetError(f"cannot be read: {error}") from error


def _table(data: bytes, footer: Mapping[int, Any]) -> Table:
    num_rows: int = footer[3]
    (group,) = footer[4]
    columns = {
        chunk[3][3][0].decode(): _read_chunk(data, chunk[3], num_rows, element)
        for chunk, element in zip(group[1], footer[2][1:], strict=True)
    }
    pairs = footer.get(5, [])
    return Table(num_rows, columns, {pair[1].decode(): pair[2] for pair in pairs})


def _read_chunk(
    data: bytes, chunk: Mapping[int, Any], num_rows: int, element: Mapping[int, Any]
) -> Column:
    reader = Reader(data, chunk[9])
    size = reader.struct()[3]
    assert isinstance(size, int)  # noqa: S101 - a page's header says so
    body = data[reader.place : reader.place + size]
    length = int.from_bytes(body[:4], "little")
    present = _read_levels(body[4 : 4 + length], num_rows)
    values = body[4 + length :]
    kind = chunk[1]
    if kind in _TYPECODES:
        return _read_numbers(_TYPECODES[kind], values, present)
    count = num_rows if present is None else present.count(1)
    if kind == _BOOLEAN:
        bits = iter(_unpacked(values, count))
        shown = b"\x01" * num_rows if present is None else present
        return Booleans(bytes(next(bits) if has else 2 for has in shown))
    if _DICTIONARY_PLACE not in chunk:
        return Texts(
            array("I", bytes(4 * num_rows)), [None], is_text=_CONVERTED in element
        )
    texts: list[bytes | None] = list(_read_dictionary(data, chunk[_DICTIONARY_PLACE]))
    codes = _read_codes(values, count)
    if present is not None:
        each = iter(codes)
        absent = len(texts)
        codes = array("I", [next(each) if has else absent for has in present])
        texts.append(None)
    return Texts(codes, texts, is_text=_CONVERTED in element)


def _read_levels(levels: bytes, num_rows: int) -> bytes | None:
    reader = Reader(levels)
    head = reader.varint()
    if head & 1:
        return _unpacked(levels[reader.place :], num_rows)
    return None if levels[reader.place] else bytes(num_rows)


def _from_little(typecode: str, values: bytes) -> "array[Any]":
    found = array(typecode)
    found.frombytes(values)
    if byteorder == "big":
        found.byteswap()
    return found


def _read_numbers(typecode: str, values: bytes, present: bytes | None) -> Numbers:
    found = _from_little(typecode, values)
    if present is None:
        return Numbers(found)
    each = iter(found)
    return Numbers(
        array(typecode, [next(each) if has else 0 for has in present]), present
    )


def _read_dictionary(data: bytes, place: int) -> Iterable[bytes]:
    reader = Reader(data, place)
    header: Any = reader.struct()
    place = reader.place
    for _ in range(header[7][1]):
        length = int.from_bytes(data[place : place + 4], "little")
        place += 4 + length
        yield data[place - length : place]


def _read_codes(values: bytes, count: int) -> "array[Any]":
    if not count:
        return array("I")
    typecode = {width: code for width, code, _ in _WIDTHS}[values[0]]
    reader = Reader(values, 1)
    reader.varint()
    return array("I", _from_little(typecode, values[reader.place :])[:count])
