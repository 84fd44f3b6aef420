from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.planning.plan_changes import differences, shown

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("xy", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 → 1.0"]),
        ({"a": 1}, {"a": True}, ["a: 1 → true"]),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, ['a.b: "x" → "y"']),
        ({"a": 1}, {}, ["a: 1 → (none)"]),
        ({}, {"a": None}, ["a: (none) → null"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a: [1,2] → [1,3]"]),
        ({"a": {"b": 1}}, {"a": 5}, ['a: {"b":1} → 5']),
    ],
)
def test_differences_name_path_old_and_new(
    old: object, new: object, expected: list[str]
) -> None:
    assert list(differences(old, new)) == expected


@settings(deadline=None)
@given(JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:  # noqa: ANN401
    assert list(differences(value, value)) == []


def test_a_long_value_is_cut() -> None:
    assert shown("x" * 500) == '"' + "x" * 79 + "…"
