import time
from collections.abc import Mapping, Sequence

import httpx
import pytest

from reward_profiling.demo.knobs import Knobs

Rows = Sequence[Mapping[str, object]]


@pytest.fixture
def row(task_rows: Rows) -> dict[str, object]:
    """Give a row that is solved always, under a key of its own."""
    return {**task_rows[0], "_ng_task_index": 41, "_ng_rollout_index": 7}


def turn(demo: httpx.Client, **knobs: object) -> None:
    demo.post("/_knobs", json=knobs).raise_for_status()


def test_every_knob_is_off_at_first(demo: httpx.Client) -> None:
    knobs = demo.get("/_knobs").json()["knobs"]

    assert Knobs(**knobs) == Knobs()


def test_turning_one_knob_leaves_others(demo: httpx.Client) -> None:
    turn(demo, fail_status=500, retry_after="1")
    turn(demo, fail_status=429)

    knobs = demo.get("/_knobs").json()["knobs"]
    assert (knobs["fail_status"], knobs["retry_after"]) == (429, "1")


@pytest.mark.parametrize(
    "body", ['{"fail":1}', '{"fail_status":"500"}', '{"pad_bytes":true}', "[]", "{"]
)
def test_a_wrong_knob_is_refused(demo: httpx.Client, body: str) -> None:
    assert demo.post("/_knobs", content=body).status_code == 422


def test_requests_are_counted_by_rollout(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    before = demo.get("/_knobs").json()["requests"]
    demo.post("/run", json=row)
    demo.post("/run", content="{")

    state = demo.get("/_knobs").json()
    assert state["requests"] == before + 2
    assert state["by_key"]["41:7"] >= 1
    assert state["in_flight"] == 0 < state["max_in_flight"]


def test_a_failure_comes_as_it_was_asked_for(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, fail_status=503, fail_body="not json", retry_after="3")

    reply = demo.post("/run", json=row)

    assert (reply.status_code, reply.text) == (503, "not json")
    assert reply.headers["Retry-After"] == "3"


def test_only_matching_requests_fail(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, fail_status=500, fail_match="Australia")
    asked = {**row, "responses_create_params": {"input": "elsewhere"}}

    assert demo.post("/run", json=row).status_code == 500
    assert demo.post("/run", json=asked).status_code == 200


def test_only_the_first_requests_fail(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    for _ in range(2):
        turn(demo, fail_status=500, fail_first=2)
        statuses = [demo.post("/run", json=row).status_code for _ in range(3)]
        assert statuses == [500, 500, 200]


def test_a_hang_ends_with_its_client(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, hang_match="Australia")

    with pytest.raises(httpx.ReadTimeout):
        demo.post("/run", json=row, timeout=0.2)

    deadline = time.monotonic() + 5
    while demo.get("/_knobs").json()["in_flight"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert demo.get("/_knobs").json()["in_flight"] == 0


def test_a_dropped_request_is_cut_off(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, drop_match="Australia")

    with pytest.raises(httpx.RemoteProtocolError):
        demo.post("/run", json=row)


def test_a_raw_reply_is_sent_verbatim(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, raw_reply_match="Australia", raw_reply='{"reward": NaN')

    reply = demo.post("/run", json=row)

    assert (reply.status_code, reply.content) == (200, b'{"reward": NaN')


def test_padding_does_not_change_the_verdict(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    short = demo.post("/run", json=row)
    turn(demo, pad_bytes=10_000)
    padded = demo.post("/run", json=row)

    lengths = [
        len(reply.json()["response"]["output"][0]["content"][0]["text"])
        for reply in (short, padded)
    ]
    assert lengths[1] - lengths[0] == 10_000
    assert padded.json()["reward"] == short.json()["reward"] == 1.0


def test_a_latency_knob_overrides_the_script(
    demo: httpx.Client, row: dict[str, object]
) -> None:
    turn(demo, latency_ms=150)
    took = []

    for _ in range(3):  # the least of three, as other work may run beside
        started = time.monotonic()
        demo.post("/run", json=row)
        took.append(time.monotonic() - started)

    assert 0.15 <= min(took) < 1
