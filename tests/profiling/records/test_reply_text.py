"""What a record's line says beside its numbers."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.profiling.records.reply_text import read_reply
from reward_profiling.profiling.rollout_table import NO, THOUGHT, YES


@pytest.mark.parametrize(
    ("listed", "components"),
    [(b'{"form": 1, "fact": 0.5}', {"form": 1, "fact": 0.5}),
     (b"[0, 1, 0.5]", {"0": 0, "1": 1, "2": 0.5}), (b'"none"', {}), (b"null", {})],
)  # fmt: skip
def test_reward_parts_have_names_or_places(
    listed: bytes, components: dict[str, float]
) -> None:
    line = b'{"reward": 1, "reward_components": ' + listed + b"}"

    assert read_reply(line).components == components


def says(*texts: str) -> bytes:
    """Return a record whose reply has these texts."""
    parts = [{"type": "output_text", "text": text} for text in texts]
    message = {"type": "message", "content": parts}
    return orjson.dumps({"response": {"output": [message]}})


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("Answer: 4", NO),
        ("<think>two and two</think>Answer: 4", NO),
        ("two and two</think>\n4", NO),
        ("4 <think>or five", NO),
        ("4<think>or five</think>", NO),
        ("a < b and <thinker>", NO),
        ("<think>two and two</think>", THOUGHT),
        ("<think>two and two</think>\n \n", THOUGHT),
        ("<think>two and", THOUGHT),
        ("\n<think>", THOUGHT),
        ("two and two</think>", THOUGHT),
        ("<think>a</think> <think>b", THOUGHT),
        ("", YES),
        (" \n", YES),
    ],
)
def test_thinking_alone_is_no_answer(text: str, empty: int) -> None:
    assert read_reply(says(text)).empty == empty
    assert read_reply(says("", text)).empty == empty
    assert read_reply(says(text, "Answer: 4")).empty == NO


def test_a_call_after_thinking_is_an_answer() -> None:
    call = {"type": "function_call", "name": "add", "arguments": "{}"}
    thought = {"type": "message", "content": "<think>I shall add</think>"}
    line = orjson.dumps({"response": {"output": [thought, call]}})

    assert read_reply(line).empty == NO


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_a_thought_before_an_answer_changes_nothing(thought: str, answer: str) -> None:
    answer = answer.replace("<think>", "").replace("</think>", "")
    found = read_reply(says(f"<think>{thought}</think>{answer}")).empty

    assert found == (NO if answer.strip() else THOUGHT)


@pytest.mark.parametrize(
    ("members", "has_error"),
    [
        ('"error": "the judge timed out"', YES),
        ('"error": {"message": "no"}', YES),
        ('"error": true', YES),
        ('"failure_reason": "judge_failed"', YES),
        ('"response": {"error": {"code": "server_error"}, "output": []}', YES),
        ('"error": null, "failure_reason": null', NO),
        ('"error": "", "exception": "None"', NO),
        ('"error": 0.25, "error_message": false', NO),
        ('"error": {}, "judge_error": []', NO),
        ('"response": {"error": null, "output": []}', NO),
        ('"detail": "an error"', NO),
    ],
)
def test_an_error_beside_a_reward_is_seen(members: str, has_error: int) -> None:
    assert read_reply(f'{{"reward": 0.0, {members}}}'.encode()).has_error == has_error
