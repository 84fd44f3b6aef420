import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.demo.verifying.numerals import read_numerals
from reward_profiling.demo.verifying.verifiers import NOTHING, number_match
from reward_profiling.errors import DatasetError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5.", "5"),
        (".5", "0.5"),
        ("1,234.5", "1234.5"),
        ("1_000", "1000"),
        ("1{,}234", "1234"),
        (r"1\,234", "1234"),
        ("1\u202f234\u00a0567", "1234567"),
        ("\u22125", "-5"),
        ("+5", "5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("€61.20", "61.2"),
        ("6.02e23", "6.02e23"),
        ("1.5E-3", "0.0015"),
        ("3 \u00d7 10^8 m/s", "3e8"),
        (r"3\times10^{-3}", "0.003"),
        (r"3 \cdot 10^{2}", "300"),
        ("10\u207b\u00b3", "0.001"),
        ("10^6", "1e6"),
        ("3/4", "0.75"),
        (r"-\frac{1}{2}", "-0.5"),
        (r"1\frac{1}{2}", "1.5"),
        ("2 1/2", "2.5"),
        ("1\u00bd", "1.5"),
        ("20 m\u00b2", "20"),
        ("20 cm^{2}", "20"),
        ("x_{1} = 7", "7"),
        ("20km", "20"),
        ("0e99999999", "0"),
    ],
)
def test_one_number_is_read(text: str, value: str) -> None:
    assert [one.value for one in read_numerals(text)] == [Decimal(value)]


@pytest.mark.parametrize(
    "text", ["H2O", "nan", "inf", "2^10", "12^3", "1/0", "2 1/0", "x"]
)
def test_only_numbers_are_read_as_numbers(text: str) -> None:
    assert read_numerals(text) == []


@pytest.mark.parametrize(
    "text", ["1e999", "-1e401", "1e-999", "1e99999999999999999999"]
)
def test_an_unbounded_number_matches_nothing(text: str) -> None:
    verdict = number_match(text, 1)

    assert (verdict.reward, verdict.extracted_answer) == (0.0, text)


@pytest.mark.parametrize(
    ("answer", "extracted"),
    [
        ("first 3, then 4", "4"),
        ("5-3", "3"),
        ("- 5 apples", "5"),
        ("Answer: 12 apples in 3 boxes", "12"),
        ("Answer: 2 + 3 = 5", "5"),
        (r"Answer: \pi \approx 3.14", "3.14"),
        ("The answer is 42. I tried 3 ways.", "42"),
        ("The answer is below.\n42", "42"),
        (r"From 1 to \boxed{42}, in 7 steps", "42"),
        (r"\boxed{7} was wrong. Answer: 42", "42"),
        ("Answer: 5 = five", "5"),
    ],
)
def test_a_stated_number_beats_the_last_one(answer: str, extracted: str) -> None:
    assert number_match(answer, 0).extracted_answer == extracted


@pytest.mark.parametrize("answer", ["", "no idea", "Answer: none", "NaN", "<think>5"])
def test_no_number_extracts_nothing(answer: str) -> None:
    assert number_match(answer, 5) == NOTHING


@pytest.mark.parametrize(
    ("answer", "expected", "tolerance", "reward"),
    [
        ("0.3", 0.2, 0.1, 1.0),
        ("0.3001", 0.2, 0.1, 0.0),
        ("101", 100, {"relative": 0.01}, 1.0),
        ("102", 100, {"relative": 0.01}, 0.0),
        ("-101", -100, {"relative": 0.01}, 1.0),
        ("3", 2, {"absolute": 1}, 1.0),
        ("0.333333333", "1/3", None, 1.0),
        ("0.333", "1/3", None, 0.0),
        ("1000001", 1000000, None, 0.0),
        ("123456789012345678901", "123,456,789,012,345,678,902", None, 0.0),
        ("5", [4, 5], None, 1.0),
        ("50%", 50, None, 1.0),
        ("50%", 0.5, None, 1.0),
        ("50", "50%", None, 1.0),
        ("0.5", "50 percent", None, 1.0),
        ("0.5%", "50%", None, 0.0),
    ],
)
def test_a_tolerance_decides_what_is_near(
    answer: str, expected: object, tolerance: object, reward: float
) -> None:
    assert number_match(answer, expected, tolerance).reward == reward


@pytest.mark.parametrize(
    "expected", [None, "", "five", "1 or 2", True, "1e999", math.nan]
)
def test_a_bad_expectation_is_the_rows_fault(expected: object) -> None:
    with pytest.raises(DatasetError, match="expected_answer"):
        number_match("5", expected)


@pytest.mark.parametrize(
    "tolerance", [-1, True, "1%", math.inf, {}, {"relative": 1, "absolute": 1}]
)
def test_a_bad_tolerance_is_the_rows_fault(tolerance: object) -> None:
    with pytest.raises(DatasetError, match="tolerance"):
        number_match("5", 5, tolerance)


@given(FINITE)
def test_every_float_is_extracted(value: float) -> None:
    for text in (repr(value), f"Answer: {value!r}.", f"\\boxed{{{value!r}}}"):
        assert number_match(text, repr(value), 0).reward == 1.0


@given(st.integers())
def test_every_whole_number_is_extracted(value: int) -> None:
    for text in (
        f"{value:,}",
        f"{value:_}",
        f"The answer is {value:,}.",
        f"{value} km",
    ):
        assert number_match(text, value).reward == float(value.bit_length() < 1300)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_every_fraction_is_extracted(over: int, under: int) -> None:
    expected = f"{over}/{under}"
    sign = "-" if over < 0 else ""
    for text in (expected, rf"\boxed{{{sign}\frac{{{abs(over)}}}{{{under}}}}}"):
        assert number_match(text, expected).reward == 1.0


@given(FINITE, FINITE, st.floats(0, 1e9))
def test_being_near_is_symmetric(left: float, right: float, tolerance: float) -> None:
    there = number_match(repr(left), repr(right), tolerance)
    back = number_match(repr(right), repr(left), tolerance)

    assert there.reward == back.reward


@given(st.text())
def test_any_text_gets_a_verdict(answer: str) -> None:
    assert number_match(answer, 1).reward in {0.0, 1.0}
