"""Replies that say more than they should, something else, or nothing of use."""

import json

import orjson
import pytest

from reward_profiling.collecting.replies.reply import finished_by_reply
from reward_profiling.errors import GymRejectedError

SHORT = {"_ng_task_index": 0, "_ng_rollout_index": 0}


def test_a_failures_class_and_names_are_redacted() -> None:
    reply = {
        "_ng_failure_class": "judge_failed with the-key",
        "_ng_failure_message": "no",
        "detail": {"the-key": 1},
    }

    finished = finished_by_reply(
        orjson.dumps(reply), SHORT, lambda text: text.replace("the-key", "[…]")
    )

    assert finished.failure_class == "judge_failed with […]"
    assert b"the-key" not in finished.line


def test_a_message_is_redacted_once_it_is_unwrapped() -> None:
    wrapped = json.dumps({"detail": "the\\u002dkey is wrong"}).replace("\\\\", "\\")
    reply = {"_ng_failure_class": "judge_failed", "_ng_failure_message": wrapped}

    finished = finished_by_reply(
        orjson.dumps(reply), SHORT, lambda text: text.replace("the-key", "[…]")
    )

    assert finished.message == "[…] is wrong"


@pytest.mark.parametrize(
    ("reply", "notes"),
    [
        ({"_ng_task_index": 0, "_ng_rollout_index": 0}, 0),
        ({"_ng_task_index": 5, "_ng_rollout_index": 0}, 1),
        ({"_ng_task_index": 5, "_ng_rollout_index": 9}, 2),
        ({}, 0),
    ],
)
def test_another_rollouts_reply_is_kept_as_asked_and_told(
    reply: dict[str, int], notes: int
) -> None:
    finished = finished_by_reply(orjson.dumps({"reward": 1, **reply}), SHORT)

    record = orjson.loads(finished.line)
    assert {name: record[name] for name in SHORT} == SHORT
    assert len(finished.notes) == notes
    assert all("which was asked" in note for note in finished.notes)


def test_a_reply_that_is_no_json_shows_how_it_begins() -> None:
    with pytest.raises(GymRejectedError) as caught:
        finished_by_reply(b"<html>\n <p>Please log in" + b"x" * 500, SHORT)

    assert '; it begins with "<html> <p>Please log in' in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"_ng_failure_message": "a", "_ng_failure_judge_error": "b"}, "a"),
        ({"_ng_failure_judge_error": "b", "failure_reason": "c"}, "b"),
        ({"_ng_failure_message": None, "failure_reason": "c"}, "c"),
        ({"error": "d"}, "d"),
        ({}, ""),
    ],
)
def test_a_judges_failure_says_what_it_holds(
    members: dict[str, object], said: str
) -> None:
    reply = {"reward": 0.0, "_ng_failure_class": "judge_failed", **members}

    assert finished_by_reply(orjson.dumps(reply), SHORT).message == said
