import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.demo.verifying.choices import normalized
from reward_profiling.demo.verifying.verifiers import NOTHING, exact_match
from reward_profiling.errors import DatasetError

WORDS = st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", "paris"),
        ("It is large.\nAnswer: Paris", "Paris"),
        ('**Answer:** "Paris".', "Paris"),
        ("**Final Answer**: Paris", "Paris"),
        ("Answer:\nParis", "Paris"),
        ("The answer is Paris. It lies on the Seine.", "Paris"),
        ("The answer is St. Helena.", "St. Helena"),
        ("The answer is the Nile", "Nile"),
        (r"Hence $\boxed{\text{Paris}}$.", "Paris"),
        (r"Answer: \boxed{Paris}", "Paris"),
        (r"\boxed{f_{n}}", "f_{n}"),
        ("Answer: Lyon\nOn reflection, answer: Paris", "Paris"),
        ("<think>Answer: Lyon</think>\nParis", "Paris"),
        ("ﬁsh", "fish"),
        ("Answer: Pacific", ["Pacific Ocean", "Pacific"]),
        ("Answer: 5", 5),
        ("Answer: 5", 5.0),
        ("Answer: 0.5", 0.5),
        ("True", True),
        ("the", "the"),
        ("!", "!"),
    ],
)
def test_the_stated_answer_matches(answer: str, expected: object) -> None:
    assert exact_match(answer, expected).reward == 1.0


@pytest.mark.parametrize(
    ("answer", "extracted"),
    [
        ("Answer: Lyon", "Lyon"),
        ("Answer: Paris, France", "Paris, France"),
        ("Paris was my first idea.\nAnswer: Lyon", "Lyon"),
        ("I do not know.", "I do not know."),
        ("This answer is correct", "This answer is correct"),
    ],
)
def test_another_answer_scores_nothing(answer: str, extracted: str) -> None:
    verdict = exact_match(answer, "Paris")

    assert (verdict.reward, verdict.extracted_answer) == (0.0, extracted)


@pytest.mark.parametrize("answer", ["", " \n ", "<think>Answer: Paris", "**"])
def test_an_empty_answer_extracts_nothing(answer: str) -> None:
    assert exact_match(answer, "Paris") == NOTHING


@pytest.mark.parametrize("expected", [None, "", [], ["a", " "], {"a": 1}, [None]])
def test_empty_expectations_are_the_rows_fault(expected: object) -> None:
    with pytest.raises(DatasetError, match="expected_answer"):
        exact_match("Paris", expected)


@given(WORDS)
def test_a_stated_word_matches_itself(word: str) -> None:
    for text in (word, f"Answer: {word}.", f"So it goes.\n\\boxed{{{word}}}"):
        assert exact_match(text, word).reward == 1.0


@given(st.text(alphabet="aTheN \"'.*$()\\{}é"))
def test_normalizing_twice_changes_nothing(text: str) -> None:
    assert normalized(normalized(text)) == normalized(text)


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_any_text_gets_a_verdict(answer: str, expected: str) -> None:
    assert exact_match(answer, expected).reward in {0.0, 1.0}
