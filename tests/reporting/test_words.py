"""Numbers and names as the report writes them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.numerics.uncertainty import Interval
from reward_profiling.reporting.page.words import (
    clean,
    count,
    distinct_names,
    interval,
    number,
    share,
)


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -math.inf])
def test_unknown_is_a_dash_and_never_zero(unknown: float | None) -> None:
    assert number(unknown) == share(unknown) == "–"  # noqa: RUF001 - the dash
    if unknown is not None:
        assert interval(Interval(low=0.0, high=unknown)) == "–"  # noqa: RUF001


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_no_number_but_zero_looks_like_zero(value: float) -> None:
    assert set(number(value)) & set("123456789")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (-0.0, "0"), (1.0, "1"), (0.5256, "0.526"), (-0.25, "\u22120.250"),
        (12.345, "12.35"), (1234.56, "1,234.6"), (123456.0, "123,456"),
        (0.00012, "0.00012"), (-1.2e-5, "\u22121.20e\u22125"), (3e300, "3.00e300"),
    ],
)  # fmt: skip
def test_numbers_have_three_or_four_digits(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (1, "100 %"), (0.125, "12.5 %"), (0.9999, "over 99.9 %"),
     (0.0001, "under 0.1 %")],
)  # fmt: skip
def test_a_share_rounds_to_neither_end(value: float, shown: str) -> None:
    assert share(value) == shown.replace(" %", "\u00a0%")


@given(st.text(alphabet=st.characters(), max_size=40), st.integers(1, 50))
def test_any_text_is_made_fit_for_a_page(text: str, length: int) -> None:
    shown = clean(text, length)

    assert len(shown) <= length
    assert shown.encode().decode() == shown
    assert "\x00" not in shown


@given(st.lists(st.text(alphabet="ab_", max_size=90), unique=True, max_size=30))
def test_two_names_are_never_shown_alike(names: list[str]) -> None:
    shown = distinct_names(names)

    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    assert all(0 < len(name) <= 70 for name in shown.values())


def test_counts_have_the_right_noun() -> None:
    assert [count(n, "task") for n in (0, 1, 2000)] == [
        "0 tasks",
        "1 task",
        "2,000 tasks",
    ]
