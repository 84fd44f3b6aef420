import orjson
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.files.line_edits import members, with_member, without_members

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-1, 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


ROWS = st.dictionaries(st.text(), JSON, max_size=6)


@given(ROWS, st.booleans())
def test_the_members_of_a_line_are_found(
    row: dict[str, object],
    spaced: bool,  # noqa: FBT001 - Hypothesis gives it by place
) -> None:
    option = orjson.OPT_INDENT_2 if spaced else 0
    text = orjson.dumps(row, option=option)

    found = {m.name: orjson.loads(text[m.value : m.end]) for m in members(text)}

    assert found == row


@given(ROWS, st.data())
def test_removing_members_keeps_other_bytes(
    row: dict[str, object], data: st.DataObject
) -> None:
    dropped = data.draw(st.sets(st.sampled_from(sorted(row) or ["x"])))
    text = orjson.dumps(row)

    found = without_members(text, dropped.__contains__)

    expected = {n: v for n, v in row.items() if n not in dropped}
    assert found == orjson.dumps(expected)


@given(ROWS, st.text())
def test_setting_a_member_keeps_other_bytes(row: dict[str, object], name: str) -> None:
    text = orjson.dumps(row)

    found = with_member(text, name, b"0.5")

    assert orjson.loads(found) == {**row, name: 0.5}
    assert list(orjson.loads(found)) == list({**row, name: 0.5})
    if name not in row:
        assert found.startswith(text[:-1])


def test_the_spacing_of_a_line_is_kept() -> None:
    text = b'{"a": 1.10, "pass_rate": 0.7,  "b": "\\u00e9"}'

    assert with_member(text, "pass_rate", b"0.25") == (
        b'{"a": 1.10, "pass_rate": 0.25,  "b": "\\u00e9"}'
    )
    assert with_member(text, "new", b"1") == text[:-1] + b', "new": 1}'
    assert without_members(text, lambda name: name == "a") == (
        b'{"pass_rate": 0.7,  "b": "\\u00e9"}'
    )
