"""Collecting against a real environment that is made to fail in every way."""

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import orjson
import pytest

from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import ObserveProgress, Progress, silent
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.errors import DuplicateRolloutError, RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_output
from reward_profiling.servers.options import EMBEDDED_TASKS
from reward_profiling.servers.readiness import read_servers
from reward_profiling.stop_scope import StopScope

CANBERRA = "capital of Australia"  # words of task 0
Rows = list[dict[str, Any]]


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output with two repeats of 24 tasks planned."""
    output = RunFiles(tmp_path / "r.jsonl")
    materialize(check_input(EMBEDDED_TASKS, PlanOptions(num_repeats=2)), output)
    return output


@pytest.fixture
def turn(servers: httpx.Client) -> Callable[..., None]:
    """Give a way to turn the environment's knobs."""

    def post(**knobs: object) -> None:
        servers.post("/_knobs", json=knobs).raise_for_status()

    return post


def collect(
    files: RunFiles,
    servers: httpx.Client,
    observe: ObserveProgress = silent,
    **options: object,
) -> ShardSummary:
    """Collect everything in this process, without retries unless told otherwise."""
    chosen = CollectOptions.made({"retries": 0, **options})

    async def run() -> ShardSummary:
        known = await read_servers(str(servers.base_url).rstrip("/"))
        shard = open_shard(files, 0, 1, chosen)
        return await collect_shard(shard, known, chosen, StopScope(), observe)

    return anyio.run(run)


def rows(path: Path) -> Rows:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def keys(path: Path) -> Counter[tuple[int, int]]:
    return Counter((r["_ng_task_index"], r["_ng_rollout_index"]) for r in rows(path))


def asked(servers: httpx.Client) -> Counter[str]:
    return Counter(servers.get("/_knobs").json()["by_key"])


def test_every_rollout_is_collected_once(
    files: RunFiles, servers: httpx.Client
) -> None:
    summary = collect(files, servers)

    assert (summary.planned, summary.collected, summary.owed) == (48, 48, 0)
    assert keys(files.rollouts) == keys(files.materialized_inputs)
    assert set(asked(servers).values()) == {1}
    assert files.failures.read_bytes() == b""


def test_a_record_has_stamps_in_gyms_order(
    files: RunFiles, servers: httpx.Client
) -> None:
    collect(files, servers)

    stamps = ["_ng_task_index", "_ng_rollout_index", "agent_ref"]
    stamps += ["_ng_environment_server", "_ng_result_type"]
    assert all(list(row)[-5:] == stamps for row in rows(files.rollouts))


def test_the_second_run_asks_for_nothing(
    files: RunFiles, servers: httpx.Client
) -> None:
    collect(files, servers)
    before = files.rollouts.read_bytes()

    summary = collect(files, servers)

    assert (summary.found, summary.collected) == (48, 0)
    assert sum(asked(servers).values()) == 48
    assert files.rollouts.read_bytes() == before


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None], status: int
) -> None:
    turn(fail_status=status, fail_first=3)

    summary = collect(files, servers, retries=4)

    assert (summary.collected, summary.failed, summary.retries) == (48, 0, 3)


@pytest.mark.parametrize("status", [400, 401, 404, 422, 302])
def test_a_refusal_is_not_repeated(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None], status: int
) -> None:
    turn(fail_status=status, fail_match=CANBERRA, fail_body="no")

    summary = collect(files, servers, retries=4)

    assert (summary.collected, summary.failed, summary.retries) == (46, 2, 0)
    failure = rows(files.failures)[0]
    assert failure["_ng_failure_class"] == "agent_run_error"
    assert failure["_ng_failure_http_status"] == status
    assert failure["_ng_failure_response_body"] == "no"


def test_one_broken_task_ends_no_run(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_match=CANBERRA)

    summary = collect(files, servers)

    assert (summary.collected, summary.failed, summary.stopped) == (46, 2, None)
    assert keys(files.failures) == {(0, 0): 1, (0, 1): 1}


def test_failures_add_up_until_given_up(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_match=CANBERRA)
    for _ in range(4):
        collect(files, servers)

    summary = collect(files, servers)

    assert (summary.given_up, summary.owed, summary.failed) == (2, 0, 0)
    assert asked(servers)["0:0"] == 3
    attempts = [r.get("_ng_attempt_index") for r in rows(files.failures)]
    assert sorted(attempts, key=str) == [1, 1, 2, 2, None, None]


def test_given_up_rollouts_can_be_retried(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_match=CANBERRA)
    collect(files, servers, max_attempts=1)
    turn(fail_status=0)

    assert collect(files, servers, max_attempts=1).given_up == 2
    assert collect(files, servers, max_attempts=1, retry_given_up=True).collected == 2
    assert keys(files.rollouts) == keys(files.materialized_inputs)


def test_a_hanging_rollout_fails_on_time(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(hang_match=CANBERRA)
    took, summaries = [], []

    for _ in range(2):  # the lesser of two, as other work may run beside
        started = time.monotonic()
        summaries.append(collect(files, servers, rollout_timeout=1))
        took.append(time.monotonic() - started)

    assert min(took) < 4
    assert [(one.collected, one.failed) for one in summaries] == [(46, 2), (0, 2)]
    assert rows(files.failures)[0]["_ng_failure_type"] == "RolloutTimeout"
    assert servers.get("/_knobs").json()["in_flight"] == 0


@pytest.mark.parametrize(("retries", "asks"), [(0, 1), (2, 3)])
def test_only_retries_ask_for_a_lost_reply(
    files: RunFiles,
    servers: httpx.Client,
    turn: Callable[..., None],
    retries: int,
    asks: int,
) -> None:
    turn(drop_match=CANBERRA)

    summary = collect(files, servers, retries=retries)

    assert (summary.failed, summary.replies_lost) == (2, 2 * asks)
    assert asked(servers)["0:0"] == asks


def test_a_server_asking_for_quiet_gets_it(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=429, fail_first=1, retry_after="1")
    moments: list[float] = []
    started = time.monotonic()

    def observe(progress: Progress, note: str | None) -> None:
        del note
        if progress.collected and not moments:
            moments.append(time.monotonic() - started)

    summary = collect(files, servers, observe, retries=1, concurrency=1)

    assert (summary.collected, summary.failed) == (48, 0)
    assert moments[0] >= 1


ODD_REPLIES = {
    "an empty object is a record": ("{}", 2, 0),
    "a record may have no reward": ('{"x": 1}', 2, 0),
    "NaN is kept as null": ('{"reward": NaN}', 2, 0),
    "an infinity is kept as null": ('{"reward": 1.0, "y": [Infinity]}', 2, 0),
    "half a surrogate pair is kept": ('{"reward": 1.0, "s": "\\ud800"}', 2, 0),
    "a huge whole number is kept": ('{"reward": 1.0, "n": 1' + "0" * 30 + "}", 2, 0),
    "spaces and line breaks are no matter": ('{ "reward":\n 1.0 }\n', 2, 0),
    "a masked record is a record": ('{"reward": 0.0, "mask_sample": true}', 2, 0),
    "a list is a failure": ("[1]", 0, 2),
    "null is a failure": ("null", 0, 2),
    "text is a failure": ("<html>busy</html>", 0, 2),
    "half an object is a failure": ('{"reward": 1.0', 0, 2),
    "a response that is text is a failure": ('{"reward": 1.0, "response": "x"}', 0, 2),
    "usage that is a list is a failure": (
        '{"reward": 1.0, "response": {"usage": [1]}}',
        0,
        2,
    ),
    "an empty response is a record": ('{"reward": 1.0, "response": ""}', 2, 0),
    "a number beyond any float is kept": ('{"reward": 1.0, "x": 1e400}', 2, 0),
    "the server may say failure": ('{"_ng_failure_class": "judge_failed"}', 0, 2),
}


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_odd_reply(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None], name: str
) -> None:
    reply, kept, failed = ODD_REPLIES[name]
    turn(raw_reply_match=CANBERRA, raw_reply=reply)

    summary = collect(files, servers)

    assert summary.collected + summary.failed == 48
    assert summary.collected == 46 + kept
    assert len(rows(files.failures)) == failed
    profile = profile_output(files, ProfileOptions())
    assert profile.collected == 46 + kept


def test_unkept_replies_stay_owed(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(raw_reply_match=CANBERRA, raw_reply='{"_ng_no_persist": true}')
    collect(files, servers)
    turn(raw_reply_match="")

    assert collect(files, servers).collected == 2


def test_a_reply_of_a_megabyte_is_one_line(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(pad_bytes=1_000_000)

    assert collect(files, servers, concurrency=4).collected == 48
    assert keys(files.rollouts) == keys(files.materialized_inputs)


def test_a_repeated_error_stops_the_run(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_body='{"detail":"Error code: 401 - invalid_api_key"}')

    summary = collect(files, servers, concurrency=4)

    assert summary.is_failed
    assert summary.stopped is not None
    assert "invalid_api_key" in summary.stopped
    assert sum(asked(servers).values()) < 20
    assert (summary.owed, files.failures.read_bytes()) == (48, b"")


def test_a_failed_share_stops_the_run(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_match="number_match_agent")

    summary = collect(files, servers, concurrency=2, max_failures="10%")

    assert summary.is_failed
    assert summary.stopped is not None
    assert "rollouts failed, over 10 %" in summary.stopped
    assert summary.owed > 0


def test_a_count_of_failures_is_kept_to(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=500, fail_match=CANBERRA)

    assert collect(files, servers, max_failures="1").is_failed
    turn(fail_status=0)
    assert collect(files, servers, max_failures="1").stopped is None
    assert keys(files.rollouts) == keys(files.materialized_inputs)


def test_a_time_budget_leaves_a_rest(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(latency_ms=400)
    started = time.monotonic()

    summary = collect(files, servers, concurrency=2, time_budget=2)

    assert time.monotonic() - started < 2.5
    assert 4 <= summary.collected <= 10
    assert (summary.failed, summary.is_failed) == (0, False)
    turn(latency_ms=0)
    assert collect(files, servers).found == summary.collected


def test_the_window_limits_what_is_in_flight(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(latency_ms=50)

    collect(files, servers, concurrency=5)

    assert servers.get("/_knobs").json()["max_in_flight"] == 5


def test_repeats_can_go_one_after_another(
    files: RunFiles, servers: httpx.Client
) -> None:
    collect(files, servers, concurrency=1, dispatch="interleaved")

    repeats = [row["_ng_rollout_index"] for row in rows(files.rollouts)]
    assert repeats == [0] * 24 + [1] * 24


def test_the_longest_tasks_can_go_first(files: RunFiles, servers: httpx.Client) -> None:
    timings = [
        {"_ng_task_index": task, "_ng_rollout_index": 0, "seconds": float(task)}
        for task in range(24)
    ]
    files.timings.write_bytes(b"\n".join(orjson.dumps(t) for t in timings) + b"\n{to")

    collect(files, servers, concurrency=1, dispatch="longest-first")

    order = [row["_ng_task_index"] for row in rows(files.rollouts)]
    assert order == sorted(order, reverse=True)


def test_a_torn_last_line_is_owed_again(files: RunFiles, servers: httpx.Client) -> None:
    collect(files, servers)
    whole = files.rollouts.read_bytes()
    os.truncate(files.rollouts, len(whole) - 30)

    summary = collect(files, servers)

    assert (summary.found, summary.collected, summary.damaged) == (47, 1, 1)
    assert sorted(rows(files.rollouts), key=str) == sorted(
        [orjson.loads(line) for line in whole.splitlines()], key=str
    )


def test_damage_in_the_middle_is_set_aside(
    files: RunFiles, servers: httpx.Client
) -> None:
    collect(files, servers)
    lines = files.rollouts.read_bytes().splitlines(keepends=True)
    lines[3], lines[7] = b'{"reward": 1.0, "_ng_ta\n', b"\0" * 40 + b"\n"
    files.rollouts.write_bytes(b"".join(lines))

    summary = collect(files, servers)

    assert (summary.damaged, summary.collected) == (2, 2)
    assert keys(files.rollouts) == keys(files.materialized_inputs)
    assert [row["line"] for row in rows(files.damaged)] == [4, 8]


def test_an_unended_last_line_is_kept(files: RunFiles, servers: httpx.Client) -> None:
    collect(files, servers)
    os.truncate(files.rollouts, files.rollouts.stat().st_size - 1)

    assert collect(files, servers).found == 48
    assert files.rollouts.read_bytes().endswith(b"}\n")


def test_a_damaged_byte_is_owed_again(files: RunFiles, servers: httpx.Client) -> None:
    collect(files, servers)
    content = files.rollouts.read_bytes()
    files.rollouts.write_bytes(content.replace(b"Answer", b"Answ\xffr", 1))

    summary = collect(files, servers)

    assert (summary.damaged, summary.collected) == (1, 1)
    assert profile_output(files, ProfileOptions()).collected == 48


def test_records_of_another_kind_are_refused(
    files: RunFiles, servers: httpx.Client
) -> None:
    files.rollouts.write_bytes(b'{"reward": 1.0}\n')

    with pytest.raises(RecordError, match=r"r.jsonl:1: has no _ng_task_index"):
        collect(files, servers)

    assert files.rollouts.read_bytes() == b'{"reward": 1.0}\n'


def test_a_deadline_shows_the_last_answer(
    files: RunFiles, servers: httpx.Client, turn: Callable[..., None]
) -> None:
    turn(fail_status=503, fail_match=CANBERRA, fail_body="the judge is down")

    collect(files, servers, rollout_timeout=1, retries=50)

    failure = rows(files.failures)[0]
    assert failure["_ng_failure_type"] == "RolloutTimeout"
    assert "the judge is down" in failure["_ng_failure_message"]
    assert failure["_ng_failure_http_status"] == 503


def test_a_plan_with_duplicates_is_refused(
    files: RunFiles, servers: httpx.Client
) -> None:
    lines = files.materialized_inputs.read_bytes().splitlines(keepends=True)
    files.materialized_inputs.write_bytes(b"".join([*lines, lines[0]]))

    with pytest.raises(DuplicateRolloutError, match="task 0 repeat 0 twice"):
        collect(files, servers)

    assert asked(servers) == {}
