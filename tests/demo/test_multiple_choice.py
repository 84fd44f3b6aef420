import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.demo.verifying.verifiers import NOTHING, multiple_choice
from reward_profiling.errors import DatasetError

OPTIONS = [{"A": "A cat"}, {"B": "Paris"}, {"C": "Rome"}, {"D": "Oslo"}]


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "b",
        "(B)",
        "B.",
        "Answer: B",
        "Answer: b",
        "**Answer:** (B) Paris",
        "Answer: (b) Paris",
        "b) Paris",
        "**B** Paris",
        r"\boxed{B}",
        r"\boxed{\text{B}}",
        "Answer: Option B",
        "The answer is B because A is wrong",
        "Answer: B, not C",
        "Neither A nor D nor C, so B\n\nDone",
        "The answer is below.\nB",
        "Answer: Paris",
        "Paris",
    ],
)
def test_the_chosen_letter_is_found(answer: str) -> None:
    assert multiple_choice(answer, "B", OPTIONS).extracted_answer == "B"


@pytest.mark.parametrize("answer", ["A is correct", "Option A means it", "A cat", "A"])
def test_the_letter_a_can_be_a_choice(answer: str) -> None:
    assert multiple_choice(answer, "A", OPTIONS).reward == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "A cat",
        "Answer: A cat",
        "I think A dog is meant",
        "neither",
        "vitamin-C",
        "C's",
        "D.C.",
        "Washington, D.C. is far",
        "a lower case b",
        "<think>Answer: B",
        "Answer: Z",
    ],
)
def test_a_letter_in_a_word_is_no_choice(answer: str) -> None:
    assert multiple_choice(answer, "B") == NOTHING


@pytest.mark.parametrize(
    "options",
    [OPTIONS, {"a": "A cat", "b": "Paris"}, ["A cat", "Paris"], None],
)
def test_options_come_in_several_shapes(options: object) -> None:
    assert multiple_choice("Answer: B", "B", options).reward == 1.0


def test_an_options_text_is_an_expectation() -> None:
    assert multiple_choice("Answer: B", "paris", OPTIONS).reward == 1.0
    assert multiple_choice("Answer: C", ["B", "C"], OPTIONS).reward == 1.0


def test_a_letter_not_offered_is_no_choice() -> None:
    assert multiple_choice("Answer: E", "B", OPTIONS) == NOTHING


@pytest.mark.parametrize("expected", ["E", "London", None, ""])
def test_unoffered_answers_are_the_rows_fault(expected: object) -> None:
    with pytest.raises(DatasetError, match="expected_answer"):
        multiple_choice("B", expected, OPTIONS)


@pytest.mark.parametrize("options", [7, "AB", [1], {}, [], {"AB": "x"}, {"A": 1}])
def test_odd_options_are_the_rows_fault(options: object) -> None:
    with pytest.raises(DatasetError, match="options"):
        multiple_choice("B", "B", options)


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"))
def test_every_letter_is_found_in_any_form(chosen: str, expected: str) -> None:
    forms = (
        "{}",
        "({})",
        "Answer: {}",
        "The answer is {}.",
        "\\boxed{{{}}}",
        "{}. Yes",
    )

    for form in forms:
        verdict = multiple_choice(form.format(chosen), expected, OPTIONS)
        assert verdict.extracted_answer == chosen
        assert verdict.reward == float(chosen == expected)


@given(st.text())
def test_any_text_gets_a_verdict(answer: str) -> None:
    assert multiple_choice(answer, "A").reward in {0.0, 1.0}
