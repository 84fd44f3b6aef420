"""Columns that were written are what pyarrow reads, and what is read again here."""

from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.files.parquet import (
    Booleans,
    Column,
    Numbers,
    ParquetError,
    Texts,
    read_parquet,
    write_parquet,
)
from reward_profiling.files.thrift_compact import (
    Reader,
    ThriftError,
    Wide,
    encode_struct,
)

WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
REAL = st.none() | st.floats(allow_nan=False)
FLAG = st.sampled_from([None, True, False])
TEXT = st.none() | st.text("aé🏆\0", max_size=4)
ROWS = st.lists(st.tuples(WHOLE, REAL, FLAG, TEXT), max_size=40)


def numbers(typecode: str, values: list[Any]) -> Numbers:
    present = bytes(value is not None for value in values)
    return Numbers(array(typecode, [value or 0 for value in values]), present)


def texts(values: list[str | None]) -> Texts:
    known = sorted({value for value in values if value is not None})
    listed: list[str | None] = [*known, None]
    codes = array("I", map(listed.index, values))
    return Texts(codes, [t if t is None else t.encode() for t in listed])


def write(path: Path, columns: dict[str, Column], num_rows: int) -> None:
    named = [(name, lambda column=column: column) for name, column in columns.items()]
    write_parquet(path, named, num_rows, {"about": b'{"a":1}'})


def columns_of(rows: list[tuple[Any, ...]]) -> dict[str, Column]:
    whole, real, flags, names = ([row[at] for row in rows] for at in range(4))
    shown = bytes(2 if flag is None else flag for flag in flags)
    return {
        "n": numbers("q", whole),
        "a/b c": numbers("d", real),
        "flag": Booleans(shown),
        "näme": texts(names),
    }


@settings(max_examples=60)
@given(rows=ROWS)
def test_pyarrow_and_we_read_what_was_written(
    rows: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - not for every test

    path = tmp_path_factory.getbasetemp() / "columns.parquet"
    write(path, columns_of(rows), len(rows))

    found = pq.read_table(path).to_pydict()
    again = read_parquet(path)

    expected = [list(column) for column in zip(*rows, strict=True)] or [[]] * 4
    assert list(found.values()) == expected
    assert pq.read_metadata(path).metadata[b"about"] == b'{"a":1}'
    assert again.num_rows == len(rows)
    assert plain(again.columns) == plain(columns_of(rows))


def plain(columns: dict[str, Column]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if isinstance(column, Numbers):
            present = column.present or b"\1" * len(column.values)
            pairs = zip(column.values, present, strict=True)
            found[name] = [value if has else None for value, has in pairs]
        elif isinstance(column, Booleans):
            found[name] = [
                None if value > 1 else bool(value) for value in column.values
            ]
        else:
            found[name] = [column.texts[code] for code in column.codes]
    return found


@pytest.mark.parametrize("count", [255, 256, 257, 65_536, 65_537])
def test_dictionaries_of_every_width_are_read_by_pyarrow(
    count: int, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    values = [str(number) for number in range(count)]
    column = Texts(array("I", range(count)), [value.encode() for value in values])
    write(tmp_path / "t.parquet", {"t": column}, count)

    assert pq.read_table(tmp_path / "t.parquet")["t"].to_pylist() == values
    assert read_parquet(tmp_path / "t.parquet").columns["t"] == column


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, columns_of([(1, 0.5, True, "a"), (None, None, None, None)]), 2)
    whole = path.read_bytes()

    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ParquetError):
            read_parquet(path)


def test_any_shorter_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, columns_of([(1, 0.5, True, "a")]), 1)
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ParquetError):
            read_parquet(path)


def test_what_pyarrow_wrote_is_not_ours(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")

    with pytest.raises(ParquetError, match="something else"):
        read_parquet(tmp_path / "t.parquet")


VALUES = st.recursive(
    st.integers(-(2**31), 2**31 - 1) | st.binary(max_size=4),
    lambda inner: (
        st.lists(st.integers(-9, 9), max_size=20)
        | st.dictionaries(st.integers(1, 14), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.integers(1, 14), VALUES, max_size=4))
def test_thrift_structs_survive_a_round_trip(struct: dict[int, Any]) -> None:
    ascending = in_order(struct)

    assert Reader(encode_struct(ascending)).struct() == ascending


def in_order(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return value


def test_wide_numbers_survive_and_bytes_that_end_early_do_not() -> None:
    coded = encode_struct({1: Wide(-(2**62)), 2: b"abc"})

    assert Reader(coded).struct() == {1: -(2**62), 2: b"abc"}
    for length in range(len(coded)):
        with pytest.raises(ThriftError):
            Reader(coded[:length]).struct()
    with pytest.raises(ThriftError, match="unknown kind"):
        Reader(b"\x1d\x00").struct()
    with pytest.raises(ThriftError, match="does not follow"):
        encode_struct({2: 1, 1: 1})
