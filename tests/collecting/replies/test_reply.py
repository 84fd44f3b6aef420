import json
import math
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.replies.finished_rollout import (
    Destination,
    finished_by_error,
    record_stamps,
)
from reward_profiling.collecting.replies.reply import (
    finished_by_envelope,
    finished_by_reply,
)
from reward_profiling.errors import (
    GymRejectedError,
    GymUnavailableError,
    ReplyLostError,
)
from reward_profiling.planning.on_disk.planned_rollouts import (
    read_planned,
    with_attempt,
)
from reward_profiling.servers.routes import Route

ROUTE = Route("http://127.0.0.1:1", "env", "legacy_agent")
ROW = {
    "_ng_rollout_id": "x", "skills_ref": {"s": 1}, "question": "q",
    "_ng_attempt_index": 2, "task_source": "math", "agent_ref": {"name": "a"},
    "_ng_rollout_index": 1, "_ng_task_index": 7,
}  # fmt: skip


def stamps_of(row: dict[str, Any], route: Route) -> dict[str, Any]:
    """Give the stamps of a row's record, as a collection gives them."""
    with TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.jsonl"
        plan.write_bytes(orjson.dumps({"_ng_environment_server": "env", **row}))
        (planned,) = read_planned(plan)
    return record_stamps(with_attempt(planned, row.get("_ng_attempt_index", 0)), route)


STAMPS = stamps_of(ROW, ROUTE)
SHORT = {"_ng_task_index": 0, "_ng_rollout_index": 0}
ORDER = [
    "_ng_task_index", "_ng_rollout_index", "agent_ref", "task_source", "skills_ref",
    "_ng_attempt_index", "_ng_rollout_id", "_ng_environment_server", "_ng_result_type",
]  # fmt: skip

whole = st.integers(-(2**63), 2**64 - 1)
numbers = whole | st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=8,
)
members = st.dictionaries(text, values, max_size=5)


def rejected(body: bytes) -> GymRejectedError:
    with pytest.raises(GymRejectedError) as caught:
        finished_by_reply(body, SHORT)
    return caught.value


def line_of(body: bytes) -> bytes | None:
    """Give a reply's line, or nothing when it is rejected."""
    try:
        return finished_by_reply(body, SHORT).line
    except GymRejectedError:
        return None


def nested(depth: int) -> bytes:
    return b'{"a":%b%b}' % (b"[" * depth, b"]" * depth)


def test_stamps_come_in_gyms_order() -> None:
    assert list(STAMPS) == ORDER
    assert list(stamps_of(SHORT, Route("http://h:1", None, None))) == ORDER[:2]


@given(members)
def test_any_object_is_stamped_at_its_end(
    reply: dict[str, Any],
) -> None:
    body = orjson.dumps(reply)

    finished = finished_by_reply(body, STAMPS)

    assert orjson.loads(finished.line) == {**orjson.loads(body), **STAMPS}
    assert list(orjson.loads(finished.line)) == [*reply, *ORDER]
    assert (finished.destination, finished.notes) == (Destination.RECORDS, ())


@given(members.filter(bool))
def test_a_reply_keeps_its_bytes(reply: dict[str, Any]) -> None:
    body = json.dumps(reply, ensure_ascii=True).encode()

    line = finished_by_reply(body, STAMPS).line

    assert line == body[:-1] + b"," + orjson.dumps(STAMPS)[1:]


@given(members, st.sampled_from(ORDER), values)
def test_a_stamp_overwrites_the_servers_own(
    reply: dict[str, Any], name: str, value: object
) -> None:
    body = orjson.dumps({name: value, **reply})

    record = orjson.loads(finished_by_reply(body, STAMPS).line)

    assert next(iter(record)) == name
    assert record[name] == STAMPS[name]
    assert len(record) == len(reply) + len(ORDER)


@pytest.mark.parametrize(
    "body",
    [b'{"a":1}', b'{ "a" : 1 }', b'{"a":1}\n', b'\n{\n"a":\r\n1}', b'{"a":1}  '],
)
def test_any_layout_becomes_one_line(body: bytes) -> None:
    line = finished_by_reply(body, SHORT).line

    assert b"\n" not in line
    assert orjson.loads(line) == {"a": 1, **SHORT}


@pytest.mark.parametrize("body", [b"{}", b"{ }", b"{          }"])
def test_an_empty_reply_is_just_stamps(body: bytes) -> None:
    assert finished_by_reply(body, SHORT).line == orjson.dumps(SHORT)


@pytest.mark.parametrize(
    ("body", "reward", "masked"),
    [
        (b'{"x":1}', None, False),
        (b'{"reward":0.5,"mask_sample":false}', 0.5, False),
        (b'{"reward":null,"mask_sample":null}', None, False),
        (b'{"reward":"1","mask_sample":true}', "1", True),
        (b'{"reward":1e999}', None, False),
        (b'{"_ng_task_index":5,"reward":1,"mask_sample":true}', 1, True),
    ],
)
def test_reward_and_mask_are_read_unchanged(
    body: bytes, reward: object, masked: object
) -> None:
    finished = finished_by_reply(body, SHORT)

    assert (finished.reward, finished.masked) == (reward, masked)


@pytest.mark.parametrize(
    ("members", "destination", "failure_class"),
    [
        ({"_ng_failure_class": None}, Destination.RECORDS, ""),
        ({"_ng_failure_class": ""}, Destination.FAILURES, ""),
        ({"_ng_failure_class": "judge_failed"}, Destination.FAILURES, "judge_failed"),
        ({"_ng_no_persist": False}, Destination.RECORDS, ""),
        ({"_ng_no_persist": True}, Destination.NOWHERE, ""),
        ({"_ng_no_persist": 1, "_ng_failure_class": "c"}, Destination.NOWHERE, "c"),
    ],
)
def test_a_replys_members_decide_its_place(
    members: dict[str, object], destination: Destination, failure_class: str
) -> None:
    finished = finished_by_reply(orjson.dumps({"reward": 1.0, **members}), SHORT)

    assert (finished.destination, finished.failure_class) == (
        destination,
        failure_class,
    )


def test_what_strict_json_lacks_is_replaced() -> None:
    wide, wider = str(2**70).encode(), b"9" * 400
    body = (
        b'{"n":NaN,"l":[1,-Infinity],"d":{"s":"a\\ud800b"},"w":' + wide
        + b',"v":' + wider + b',"u":' + b"9" * 5000 + b',"k":0.5}'
    )  # fmt: skip

    finished = finished_by_reply(body, SHORT)

    assert orjson.loads(finished.line) == {
        "n": None, "l": [1, None], "d": {"s": "a�b"}, "w": float(2**70),
        "v": None, "u": None, "k": 0.5, **SHORT,
    }  # fmt: skip
    assert [note.split(" ")[0] for note in finished.notes] == [
        "n", "l[1]", "d.s", "w", "v", "u",
    ]  # fmt: skip


odd_text = st.text(st.characters(), max_size=6)  # surrogates too
odd_numbers = st.floats() | st.integers(-(2**70), 2**70)
odd_values = st.recursive(
    st.none() | odd_numbers | odd_text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=8,
)


def kept(value: object) -> object:
    """Say what may be left of a value."""
    if isinstance(value, list):
        return [kept(inner) for inner in value]
    if isinstance(value, dict):
        return {name: kept(inner) for name, inner in value.items()}
    if isinstance(value, str):
        return "".join("�" if 0xD800 <= ord(c) < 0xE000 else c for c in value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    return value


@given(st.dictionaries(text, odd_values, max_size=4))
def test_all_else_of_a_lax_reply_is_kept(
    reply: dict[str, object],
) -> None:
    body = json.dumps({**reply, "odd": math.nan}).encode()

    finished = finished_by_reply(body, SHORT)

    # Python's own JSON joins escapes that are a pair; so does the comparison.
    read = json.loads(json.dumps({**reply, "odd": None}))
    assert orjson.loads(finished.line) == {**kept(read), **SHORT}  # type: ignore[dict-item]
    assert "odd was nan, kept as null" in finished.notes


@given(st.binary(max_size=30) | st.binary(max_size=20).map(lambda b: b'{"a":"%b"}' % b))
def test_any_body_is_a_line_or_rejected(body: bytes) -> None:
    line = line_of(body)

    assert line is None or orjson.loads(line).items() >= SHORT.items()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b'{"a":"\xff"}', b"{}{}"])
def test_what_is_not_json_is_rejected(body: bytes) -> None:
    error = rejected(body)

    assert str(error).startswith("the reply is not JSON")
    assert (error.status, bool(error.kind)) == (200, True)
    assert error.body == body.decode("utf-8", "replace")


@pytest.mark.parametrize("body", [b"null", b"[]", b'"text"', b"1", b"NaN"])
def test_what_is_no_object_is_rejected(body: bytes) -> None:
    assert rejected(body).kind == "NotAnObject"


@pytest.mark.parametrize("depth", [10, 500, 1000, 1030, 5000, 200_000])
@pytest.mark.parametrize("rest", [b"", b'"x":NaN,', b'"_ng_task_index":1,'])
def test_only_a_readable_reply_is_written(depth: int, rest: bytes) -> None:
    body = b"{" + rest + nested(depth)[1:]

    line = line_of(body)

    assert depth > 250 if line is None else orjson.loads(line)["a"]


@pytest.mark.parametrize(
    ("status", "failure_class"),
    [
        (None, "agent_request_failed"),
        (429, "agent_request_failed"),
        (502, "agent_request_failed"),
        (503, "agent_request_failed"),
        (504, "agent_request_failed"),
        (500, "agent_run_error"),
        (404, "agent_run_error"),
        (200, "agent_run_error"),
    ],
)
def test_a_status_decides_a_failures_class(
    status: int | None, failure_class: str
) -> None:
    error = GymUnavailableError("away", status=status)

    assert finished_by_error(error, SHORT).failure_class == failure_class


def test_a_failure_has_gyms_keys_and_stamps() -> None:
    error = ReplyLostError("cut off", kind="ReadError")

    finished = finished_by_error(pickle.loads(pickle.dumps(error)), STAMPS)  # noqa: S301

    assert finished.destination is Destination.FAILURES
    assert finished.line == orjson.dumps({
        "_ng_failure_class": "agent_request_failed", "_ng_failure_type": "ReadError",
        "_ng_failure_message": "cut off", "_ng_failure_http_status": None,
        "_ng_failure_response_body": None, **STAMPS,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (None, None),
        ("", None),
        ("x" * 2000, "x" * 2000),
        ("x" * 2001, "x" * 2000 + "…"),
        ("é" * 1500, "é" * 1500 + "…"),
    ],
)
def test_a_failure_body_is_cut_as_gym_does(body: str | None, shown: str | None) -> None:
    finished = finished_by_error(GymRejectedError("no", status=500, body=body), SHORT)

    assert orjson.loads(finished.line)["_ng_failure_response_body"] == shown


@given(odd_text)
def test_any_message_can_be_written(message: str) -> None:
    finished = finished_by_error(GymRejectedError(message, body=message), SHORT)

    assert orjson.loads(finished.line)["_ng_failure_type"] == "GymRejectedError"


EPISODE = {
    "episode_id": {"rollout_id": "0-0", "attempt": 0},
    "task_id": {"taskset": "ts", "task_id": "1"},
}


def episode(**members: object) -> bytes:
    return orjson.dumps({**EPISODE, **members})


@given(members.map(lambda m: {k: v for k, v in m.items() if not k.startswith("_")}))
def test_an_episode_result_carries_its_task(
    result: dict[str, Any],
) -> None:
    finished = finished_by_envelope(episode(result=result, failure=None), SHORT)

    expected = {**result, "_ng_task_id": EPISODE["task_id"], **SHORT}
    assert finished.line == orjson.dumps(expected)
    assert finished.destination is Destination.RECORDS
    assert finished.reward == result.get("reward")


def test_an_episode_result_may_be_masked() -> None:
    finished = finished_by_envelope(
        episode(result={"reward": 0.5, "mask_sample": True}), SHORT
    )

    assert (finished.reward, finished.masked) == (0.5, True)


TASK_OF_FAILURE = (
    '{"_ng_task_id":{"taskset":"ts","task_id":"1"},'
    '"_ng_failure_class":"environment_server_failed",'
)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ({"failure_reason": "r", "terminal": True, "failure_kind": "k"},
         '"_ng_failure_terminal":true,"_ng_failure_message":"r",'),
        ({"failure_reason": "r", "terminal": False, "stage": "seed"},
         ('"_ng_failure_terminal":false,"_ng_failure_message":"r",'
          '"_ng_failure_stage":"seed",')),
        ({"terminal": None, "stage": None, "partial_response": {"id": "x"}},
         ('"_ng_failure_terminal":false,"_ng_failure_message":null,'
          '"_ng_failure_partial_response":{"id":"x"},')),
    ],
)  # fmt: skip
@pytest.mark.parametrize("result", [None, {"reward": 1.0}])
def test_an_episode_failure_is_recorded(
    failure: dict[str, Any], expected: str, result: object
) -> None:
    finished = finished_by_envelope(episode(result=result, failure=failure), SHORT)

    line = finished.line.decode()
    assert line.startswith(TASK_OF_FAILURE + expected + '"_ng_task_index":0')
    assert finished.destination is Destination.FAILURES
    assert finished.failure_class == "environment_server_failed"
    assert finished.message == (failure.get("failure_reason") or "")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"result": None}, "its result is not an object"),
        ({"result": [1]}, "its result is not an object"),
        ({"failure": "boo"}, "its failure is not an object"),
        ({"failure": False, "result": {}}, "its failure is not an object"),
        ({"result": {"_ng_x": 1, "a": 2}}, "its result uses our own names: _ng_x"),
        ({"result": {"_ng_failure_class": "x"}}, "our own names: _ng_failure_class"),
        ({"result": {"ng_perf": 1, "ng_trajectory": 2}}, "ng_perf, ng_trajectory"),
    ],
)
def test_an_unkeepable_episode_is_rejected(
    members: dict[str, object], said: str
) -> None:
    with pytest.raises(GymRejectedError, match=said) as rejected:
        finished_by_envelope(episode(**members), SHORT)

    assert (rejected.value.kind, rejected.value.status) == ("NotAnEpisode", 200)


@pytest.mark.parametrize(
    "reply",
    [{"reward": 1.0}, {"episode_id": "x", "task_id": {}, "result": {}}, EPISODE],
)
def test_a_reply_of_no_episode_is_kept_whole(
    reply: dict[str, Any],
) -> None:
    finished = finished_by_envelope(orjson.dumps(reply), SHORT)

    assert finished.line == orjson.dumps({**reply, **SHORT})


@pytest.mark.parametrize("body", [b"[1]", b"null", b"{", b"busy"])
def test_an_episode_must_be_an_object(body: bytes) -> None:
    with pytest.raises(GymRejectedError):
        finished_by_envelope(body, SHORT)


def test_lax_values_of_an_episode_are_named() -> None:
    body = episode(result={"reward": 1.0}).replace(b"1.0", b"NaN")

    finished = finished_by_envelope(body, SHORT)

    assert finished.notes == ("result.reward was nan, kept as null",)
    assert finished.reward is None
