"""Tables that were written are what pyarrow reads, and what is read again here."""

import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arro3.core import Array
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.files.parquet import (
    ROWS_AT_ONCE,
    ParquetError,
    booleans,
    numbers,
    open_parquet,
    texts,
    write_parquet,
)

WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
REAL = st.none() | st.floats(allow_nan=False)
FLAG = st.sampled_from([None, True, False])
TEXT = st.none() | st.text("aé🏆\0", max_size=4)
ROWS = st.lists(st.tuples(WHOLE, REAL, FLAG, TEXT), max_size=40)
Rows = list[tuple[Any, ...]]
NAMES = ("n", "a/b c", "flag", "näme")


def numbers_of(typecode: str, values: list[Any]) -> Array:
    present = bytes(value is not None for value in values)
    return numbers(array(typecode, [value or 0 for value in values]), present)


def texts_of(values: list[str | None]) -> Array:
    known: list[str | None] = [None, *sorted({v for v in values if v is not None})]
    return texts(array("I", map(known.index, values)), known)


def part_of(rows: Rows) -> dict[str, Array]:
    whole, real, flags, names = ([row[at] for row in rows] for at in range(4))
    shown = bytes(2 if flag is None else flag for flag in flags)
    columns = (numbers_of("q", whole), numbers_of("d", real), booleans(shown),
               texts_of(names))  # fmt: skip
    return dict(zip(NAMES, columns, strict=True))


def write(path: Path, *parts: Rows) -> None:
    write_parquet(path, map(part_of, parts), '{"a":1}')


@settings(max_examples=60)
@given(rows=ROWS, cut=st.integers(0, 40))
def test_pyarrow_reads_what_was_written(
    rows: Rows, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "columns.parquet"
    write(path, rows[:cut], rows[cut:])

    found = pq.read_table(path).to_pydict()
    with open_parquet(path) as table:
        about, names = table.about, table.names
        again = table.columns(["näme", "n", "a/b c"])

    expected = [list(column) for column in zip(*rows, strict=True)] or [[]] * 4
    assert list(found.values()) == expected
    assert names == list(found) == list(NAMES)
    assert pq.read_metadata(path).metadata[b"gym-reward-profiling"] == about
    assert about == b'{"a":1}'
    assert shown(again["n"], expected[0]) == expected[0]
    assert shown(again["a/b c"], expected[1]) == expected[1]
    assert again["näme"] == expected[3]


def shown(column: "array[Any]", expected: list[Any]) -> list[Any]:
    """Return a column as a list, without what stands where there is nothing."""
    pairs = zip(column, expected, strict=True)
    return [None if value is None else read for read, value in pairs]


def test_a_table_has_types_all_readers_know(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", [(1, 0.5, True, "a")])

    schema = pq.read_schema(tmp_path / "t.parquet")

    assert schema.types == [pa.int64(), pa.float64(), pa.bool_(), pa.string()]


@pytest.mark.parametrize(
    "count", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 70_001]
)
def test_rows_of_many_parts_keep_their_order(count: int, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"

    def parts() -> Iterator[dict[str, Array]]:
        for start in range(0, count, 1_000):
            rows = range(start, min(start + 1_000, count))
            flags = bytes(row % 3 for row in rows)
            found = array("q", rows)
            yield {
                "n": numbers(found, flags),
                "all": numbers(found),
                "t": texts(flags, ["a", "b", None]),
            }

    write_parquet(path, parts(), "")
    with open_parquet(path) as table:
        found = table.columns(["n", "all", "t"])

    assert found["all"] == array("q", range(count))
    assert found["t"] == [("a", "b", None)[row % 3] for row in range(count)]
    expected = [row if row % 3 else None for row in range(count)]
    assert shown(found["n"], expected) == expected
    assert pq.read_table(path)["n"].to_pylist() == expected


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, [(1, 0.5, True, "a"), (None, None, None, None)])
    whole = path.read_bytes()

    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ParquetError), open_parquet(path):
            pass


def test_any_shorter_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, [(1, 0.5, True, "a")])
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ParquetError), open_parquet(path):
            pass


def test_what_pyarrow_wrote_is_not_ours(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")

    with (
        pytest.raises(ParquetError, match="another program"),
        open_parquet(tmp_path / "t.parquet"),
    ):
        pass


def test_another_versions_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, [(1, 0.5, True, "a")])
    ours = pq.read_metadata(path).created_by.encode()
    theirs = b"gym-reward-profiling".ljust(len(ours))
    path.write_bytes(path.read_bytes().replace(ours, theirs))

    with pytest.raises(ParquetError, match="another version"), open_parquet(path):
        pass


def test_a_lookalike_checksum_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    odd = "gym-reward-profiling crc32 00000000"

    write_parquet(path, [{odd: texts(b"\0", [odd])}], odd)

    with open_parquet(path) as table:
        assert table.about == odd.encode()
        assert table.columns([odd]) == {odd: [odd]}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_failing_part_writes_nothing(
    error: type[BaseException], tmp_path: Path
) -> None:
    def parts() -> Iterator[dict[str, Array]]:
        yield part_of([(1, 0.5, True, "a")])
        raise error

    with pytest.raises(error):
        write_parquet(tmp_path / "t.parquet", parts(), "")

    assert list(tmp_path.iterdir()) == []


FILL = """
import resource, sys
from array import array
from pathlib import Path
from reward_profiling.files.parquet import numbers, write_parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
write_parquet(Path(sys.argv[1]), [{"n": numbers(array("q", range(9_000)))}], "")
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"old")

    done = subprocess.run(
        [sys.executable, "-c", FILL, str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.endswith(
        "t.parquet cannot be written: File too large; the old file is kept\n"
    )
    assert "panicked" not in done.stderr
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [
        ("t.parquet", b"old")
    ]
