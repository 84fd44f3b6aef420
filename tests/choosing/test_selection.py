from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.choosing.dataset_folder import Columns, card
from reward_profiling.choosing.row_matching import (
    PlannedContents,
    SourceRow,
    contents_of,
    match_rows,
)
from reward_profiling.choosing.selection import (
    Counts,
    SelectOptions,
    compare_rates,
    judge,
    ordered,
)
from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.files.line_edits import members, with_member, without_members

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-1, 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
ROWS = st.dictionaries(st.text(), JSON, max_size=6)


def options(**given: object) -> SelectOptions:
    return SelectOptions.made(given)


def kept(n: int, chosen: SelectOptions) -> list[int]:
    found = [judge(Counts(n, c, 0 < c < n), chosen).verdict for c in range(n + 1)]
    return [c for c, verdict in enumerate(found) if verdict == "kept"]


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"open_ends": True}, [1, 2, 3, 4, 5, 6, 7]),
        ({"min_pass_rate": 0.2, "max_pass_rate": 0.8}, [2, 3, 4, 5, 6]),
        ({"max_pass_rate": "0.9"}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"min_pass_rate": "25%", "max_pass_rate": "3/4"}, [2, 3, 4, 5, 6]),
        ({"min_pass_rate": 0.25, "max_pass_rate": 0.75, "open_ends": True}, [3, 4, 5]),
        ({"min_pass_rate": 0.25, "open_min": True}, [3, 4, 5, 6, 7, 8]),
        ({"max_pass_rate": 0.75, "open_max": True}, [0, 1, 2, 3, 4, 5]),
        ({"drop_zero_signal": True}, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_bands_keep_the_known_counts_of_eight(
    given: dict[str, object], counts: list[int]
) -> None:
    assert kept(8, options(**given)) == counts


def test_three_of_ten_are_not_above_three_tenths() -> None:
    assert sum([0.1] * 3) > 0.3
    assert kept(10, options(max_pass_rate=0.3)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (None, "not in the plan"),
        (Counts(0, 0, has_signal=False), "no scored rollout"),
        (Counts(3, 1, has_signal=True), "fewer than 4 scored rollouts"),
    ],
)
def test_what_too_few_rollouts_say_nothing_of_is_undetermined(
    counts: Counts | None, reason: str
) -> None:
    found = judge(counts, options(open_ends=True, min_rollouts=4))

    assert (found.verdict, found.reason) == ("undetermined", reason)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_pass_rate": 0.8, "max_pass_rate": 0.2}, "no pass rate lies between"),
        ({"min_pass_rate": 1, "open_min": True}, "no pass rate lies between"),
        ({"min_pass_rate": "often"}, "is no rate"),
        ({"max_pass_rate": 1.5}, "is not between 0 and 1"),
        ({"max_pass_rate": "1/0"}, "is no rate"),
        ({"annotate": "_ng_rate"}, "are Gym's own"),
        ({"annotate": "responses_create_params"}, "is a part of the task itself"),
        ({"min_rollouts": 0}, "min_rollouts must be at least 1"),
    ],
)
def test_selections_that_make_no_sense_are_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        options(**given)


def test_a_selection_of_everything_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing says what to keep"):
        SelectOptions().require_rule()


def test_rows_are_ordered_by_rate_and_else_as_they_stand() -> None:
    rates = [Fraction(c, 8) for c in (4, 1, 7, 1, 5)]

    assert ordered(rates, "input") == [0, 1, 2, 3, 4]
    assert ordered(rates, "hard-first") == [1, 3, 0, 4, 2]
    assert ordered(rates, "easy-first") == [2, 4, 0, 1, 3]
    assert ordered(rates, "informative-first") == [0, 4, 1, 2, 3]


def test_an_earlier_rate_is_compared_row_by_row() -> None:
    pairs = [(0.5, Fraction(1, 2)), (0.9, Fraction(1, 2)), (0.1, Fraction(0))]

    found = compare_rates("pass_rate", pairs, options(open_ends=True).band)

    assert found is not None
    assert (found.num_rows, found.num_moved) == (3, 1)
    assert (found.old_mean, found.new_mean) == pytest.approx((0.5, 1 / 3))
    assert compare_rates("pass_rate", [], options(open_ends=True).band) is None


@given(ROWS, st.booleans())
def test_the_members_of_a_line_are_found_as_they_stand(
    row: dict[str, object],
    spaced: bool,  # noqa: FBT001 - Hypothesis gives it by place
) -> None:
    option = orjson.OPT_INDENT_2 if spaced else 0
    text = orjson.dumps(row, option=option)

    found = {m.name: orjson.loads(text[m.value : m.end]) for m in members(text)}

    assert found == row


@given(ROWS, st.data())
def test_members_leave_a_line_and_nothing_else_does(
    row: dict[str, object], data: st.DataObject
) -> None:
    dropped = data.draw(st.sets(st.sampled_from(sorted(row) or ["x"])))
    text = orjson.dumps(row)

    found = without_members(text, dropped.__contains__)

    expected = {n: v for n, v in row.items() if n not in dropped}
    assert found == orjson.dumps(expected)


@given(ROWS, st.text())
def test_one_member_is_set_and_every_other_byte_stays(
    row: dict[str, object], name: str
) -> None:
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


def encode(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def row(text: str, **more: object) -> dict[str, object]:
    return {"responses_create_params": {"input": text}, **more}


def source(*rows: Mapping[str, object]) -> list[SourceRow]:
    return [
        SourceRow(line, contents_of(one, encode), one.get("_ng_task_index"))  # type: ignore[arg-type]
        for line, one in enumerate(rows, start=1)
    ]


def plan(*rows: Mapping[str, object]) -> PlannedContents:
    planned = PlannedContents()
    for index, one in enumerate(rows):
        planned.add(index, contents_of({**one, "_ng_task_index": index}, encode))
    return planned


def test_rows_are_matched_by_content_wherever_they_stand_now() -> None:
    planned = plan(row("a"), row("b"), row("c"))

    assert match_rows(source(row("c"), row("new"), row("a")), planned, "t") == [
        2, None, 0,
    ]  # fmt: skip


def test_what_a_plan_changes_does_not_hide_a_row() -> None:
    overlaid = {"input": "a", "temperature": 1.0}
    planned = plan(
        {"responses_create_params": overlaid, "agent_ref": {"name": "other"}, "x": 1},
        row("b", x=1),
    )

    assert match_rows(source(row("b", x=1), row("a", x=1)), planned, "t") == [1, 0]


def test_rows_that_differ_only_in_what_was_overlaid_keep_their_order() -> None:
    planned = plan(row("a"), row("a"))
    first = {"responses_create_params": {"input": "a", "temperature": 0}}
    second = {"responses_create_params": {"input": "a", "temperature": 1}}

    assert match_rows(source(first, second), planned, "t") == [0, 1]
    with pytest.raises(DatasetError, match="t:1: tasks 0, 1 of the plan say the same"):
        match_rows(source(second), planned, "t")


def test_an_index_that_a_row_brings_counts_if_the_row_says_the_same() -> None:
    planned = plan(row("a"), row("b"))

    assert match_rows(source(row("b", _ng_task_index=1)), planned, "t") == [1]
    with pytest.raises(DatasetError, match="says something else than task 0"):
        match_rows(source(row("b", _ng_task_index=0)), planned, "t")


def test_columns_of_one_type_stay_and_others_become_text() -> None:
    rows: list[dict[str, object]] = [
        {"a": 1, "b": "x", "c": {"n": 1}, "d": [1], "e": None},
        {"a": 1.5, "b": ["x"], "c": {"n": None}, "d": [], "f": {"m": 1}},
        {"a": None, "b": "y", "c": {"n": 2}, "d": ["x"], "f": {"o": 1}},
    ]
    columns = Columns()
    for one in rows:
        columns.see(one)

    written = [columns.row(one) for one in rows]

    assert columns.as_text == ["b", "d", "f"]
    assert written[0] == {
        "a": 1, "b": '"x"', "c": {"n": 1}, "d": "[1]", "e": None, "f": None,
    }  # fmt: skip
    assert Counter(tuple(one) for one in written).total() == 3
    assert len({tuple(one) for one in written}) == 1


def test_a_card_says_how_its_folder_is_loaded() -> None:
    text = card("set", ["3 of 4 rows"], ["b"])

    assert text.startswith("---\nconfigs:\n")
    assert "path: data/train.jsonl" in text
    assert "`b`" in text
    assert "`b`" not in card("set", [], [])
