from collections import Counter

from reward_profiling.choosing.selecting.dataset_folder import ColumnTypes, card


def test_mixed_columns_become_text() -> None:
    rows: list[dict[str, object]] = [
        {"a": 1, "b": "x", "c": {"n": 1}, "d": [1], "e": None},
        {"a": 1.5, "b": ["x"], "c": {"n": None}, "d": [], "f": {"m": 1}},
        {"a": None, "b": "y", "c": {"n": 2}, "d": ["x"], "f": {"o": 1}},
    ]
    columns = ColumnTypes()
    for one in rows:
        columns.see(one)

    written = [columns.row(one) for one in rows]

    assert columns.as_text == ["b", "d", "f"]
    assert written[0] == {
        "a": 1, "b": '"x"', "c": {"n": 1}, "d": "[1]", "e": None, "f": None,
    }  # fmt: skip
    assert Counter(tuple(one) for one in written).total() == 3
    assert len({tuple(one) for one in written}) == 1


def test_a_card_says_how_to_load_its_folder() -> None:
    text = card("set", ["3 of 4 rows"], ["b"])

    assert text.startswith("---\nconfigs:\n")
    assert "path: data/train.jsonl" in text
    assert "`b`" in text
    assert "`b`" not in card("set", [], [])
