from pathlib import Path
from typing import IO

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.errors import ConfigError, DuplicateRolloutError, RecordError
from reward_profiling.files import json_lines

BOM = b"\xef\xbb\xbf"


def texts(path: Path, content: bytes) -> list[tuple[int, bytes]]:
    path.write_bytes(content)
    return [(line.number, line.text) for line in json_lines.read_lines(path)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n", []),
        (BOM, []),
        (BOM + b"\n", []),
        (b"{}\n", [(1, b"{}")]),
        (b"{}", [(1, b"{}")]),
        (BOM + b"{}\r\n{}", [(1, b"{}"), (2, b"{}")]),
        (b"\n{}\n \t\n{}\n", [(2, b"{}"), (4, b"{}")]),
        (b" {} \r\n", [(1, b" {} ")]),
        ('{"a":"\u2028"}\n'.encode(), [(1, '{"a":"\u2028"}'.encode())]),
    ],
)
def test_lines_are_read_without_endings(
    tmp_path: Path, content: bytes, expected: list[tuple[int, bytes]]
) -> None:
    assert texts(tmp_path / "a.jsonl", content) == expected


def test_place_of_a_line_leads_back_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(BOM + b'{"n":0}\r\n\n{"n":1}\n{"n":2}')
    places = [line.place for line in json_lines.read_lines(path)]

    with json_lines.open_to_read(path) as file:
        found = [json_lines.read_row(file, place) for place in reversed(places)]

    assert found == [{"n": 2}, {"n": 1}, {"n": 0}]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.jsonl does not exist"):
        list(json_lines.read_lines(tmp_path / "none.jsonl"))


def test_a_folder_for_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        list(json_lines.read_lines(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<PLACEHOLDER ROW>", "is not JSON: <PLACEHOLDER ROW>"),
        (b'{"a":NaN}', "is not JSON"),
        (b'{"a":1e999}', "is not JSON"),
        (b'{"a":"\xff"}', "is not JSON"),
        (b"[1]", r"is not a JSON object: \[1\]"),
        (b"null", "is not a JSON object: null"),
        (b"{" + b"x" * 500, r"x{59}…"),
    ],
)
def test_line_that_is_no_object_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        json_lines.parse_object(text)


@pytest.mark.parametrize(
    "number",
    ["18446744073709551616", "-9223372036854775809", "1" + "0" * 30, "9" * 9000],
)
def test_numbers_past_64_bits_are_refused(number: str) -> None:
    with pytest.raises(RecordError, match=f"whole number {number[:20]}"):
        json_lines.refuse_wide_integers(f'{{"a":[{number}]}}'.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":18446744073709551615,"b":-9223372036854775808}',
        '{"a":1.23456789012345678901234567890}',
        '{"a":1e30}',
        '{"a":"184467440737095516160000"}',
    ],
)
def test_number_that_is_kept_is_accepted(text: str) -> None:
    json_lines.refuse_wide_integers(text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":1,"a":2}', True),
        (b'{"a":{"b":1,"b":1}}', True),
        (b'{"a":[{"b":1,"b":1}]}', True),
        (b'{"a":1,"b":{"a":1}}', False),
        (b'{"a":"x:y\\u003a"}', False),
    ],
)
def test_duplicate_keys_are_found(text: bytes, *, expected: bool) -> None:
    assert json_lines.has_duplicate_keys(text, orjson.loads(text)) is expected


def test_an_inner_error_keeps_its_type() -> None:
    with (
        pytest.raises(DuplicateRolloutError, match=r"^a\.jsonl:7: twice$"),
        json_lines.located(Path("a.jsonl"), 7),
    ):
        raise DuplicateRolloutError("twice")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def write(file: IO[bytes]) -> None:
        file.write(b"half")
        raise RecordError("stop")

    with pytest.raises(RecordError, match="stop"):
        json_lines.replace_file(path, write)

    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [
        ("a.json", b"old")
    ]


def test_rows_are_written_to_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"

    json_lines.replace_rows(path, [{"é": 1.0}, {"b": None}])

    assert path.read_text("utf-8") == '{"é":1.0}\n{"b":null}\n'
    assert [p.name for p in path.parent.iterdir()] == ["a.jsonl"]


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(-9, 9))))
def test_what_is_written_is_read_back(rows: list[dict[str, str | int]]) -> None:
    content = b"".join(orjson.dumps(row) + b"\n" for row in rows)

    assert [json_lines.parse_object(line) for line in content.splitlines()] == rows
