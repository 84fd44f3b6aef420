"""What a collection says of what it found, lost and kept otherwise than it came."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import orjson
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.observing import turn

Run = Callable[..., CompletedProcess[str]]
CANBERRA = "capital of Australia"  # words of task 0


@pytest.fixture
def output(tmp_path: Path, command: Run) -> Path:
    """Give an output with 2 repeats of 24 tasks planned."""
    line = ("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl")
    assert command(*line, "--num-repeats", "2").returncode == 0
    return tmp_path / "r.jsonl"


def collect(
    command: Run, output: Path, servers: httpx.Client, *options: str
) -> CompletedProcess[str]:
    where = ("--output", output, "--head-url", str(servers.base_url))
    return command("collect", *where, "--retries", "0", *options)


def rows(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_lost_replies_are_told_wherever_one_looks(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    turn(servers, drop_match=CANBERRA)

    done = collect(command, output, servers)
    profiled = command("profile", "--rollouts", output, "--allow-partial", "--insights")

    assert "2 replies were lost on the way (possibly run twice: 2)" in done.stderr
    timings = rows(output.with_name("r_timings.jsonl"))
    lost = [row["_ng_task_index"] for row in timings if row.get("replies_lost")]
    assert lost == [0, 0]
    assert "possibly run twice: 2" in profiled.stdout + profiled.stderr
    insights = orjson.loads(output.with_name("r_insights.json").read_bytes())
    assert insights["replies_lost"] == 2


def test_without_losses_nothing_is_said(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    done = collect(command, output, servers)
    command("profile", "--rollouts", output, "--insights")

    assert "lost" not in done.stdout + done.stderr
    timings = rows(output.with_name("r_timings.jsonl"))
    assert not any("replies_lost" in row for row in timings)
    insights = orjson.loads(output.with_name("r_insights.json").read_bytes())
    assert insights["replies_lost"] == 0


def test_the_live_mean_covers_the_whole_file(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    collect(command, output, servers)
    kept = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(kept[:-3]))
    rewards = [float(str(row["reward"])) for row in rows(output)]

    done = collect(command, output, servers)

    (line,) = [it for it in done.stderr.splitlines() if "48/48 done" in it]
    assert "45 from earlier runs" in line
    assert "(n=48)" in line
    assert len(rewards) == 45


def test_another_rollouts_reply_is_kept_as_asked(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    stranger = '{"reward": 1.0, "_ng_task_index": 7, "_ng_rollout_index": 0}'
    turn(servers, raw_reply_match=CANBERRA, raw_reply=stranger)

    done = collect(command, output, servers)

    said = " ".join(done.stderr.split())
    assert "task 0 repeat 0: the reply's _ng_task_index was 7, kept as 0" in said
    keys = {(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows(output)}
    assert len(keys) == 48


def test_a_reply_that_is_no_json_names_who_said_what(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    page = "<html><title>Sign in</title>"
    turn(servers, raw_reply_match=CANBERRA, raw_reply=page)

    collect(command, output, servers)

    first, *_ = rows(output.with_name("r_failures.jsonl"))
    said = str(first["_ng_failure_message"])
    assert said.startswith(str(servers.base_url).rstrip("/") + "/run: the reply is not")
    assert f'it begins with "{page}"' in said


def test_a_proxys_page_is_its_title(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    page = "<html>\r\n<head><title>504 Gateway Time-out</title></head></html>"
    turn(servers, fail_status=504, fail_match=CANBERRA, fail_body=page)

    done = collect(command, output, servers)

    said = " ".join(done.stderr.split())
    assert "504 Gateway Timeout: 504 Gateway Time-out (a page in HTML)" in said
    assert "<head>" not in said


def test_errors_beside_rewards_are_a_finding(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    failed = '{"reward": 0.0, "error": "the judge timed out", "response": null}'
    turn(servers, raw_reply_match=CANBERRA, raw_reply=failed)
    collect(command, output, servers)

    command("profile", "--rollouts", output, "--insights")

    insights = orjson.loads(output.with_name("r_insights.json").read_bytes())
    found = {one["name"]: one for one in insights["findings"]}["scored_errors"]
    assert found["evidence"]["with_error"] == 2
    assert found["evidence"]["tasks_without"] > 0
    # Again, now from the columns that the first profile left.
    command("profile", "--rollouts", output, "--insights")
    again = orjson.loads(output.with_name("r_insights.json").read_bytes())
    assert again["findings"] == insights["findings"]


def test_no_time_starts_nothing(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    done = collect(command, output, servers, "--time-budget", "0")

    assert done.returncode == 3
    assert "the time budget of 0 s is used up" in " ".join(done.stderr.split())
    assert "0 of 48 rollouts collected" in done.stdout
    assert servers.get("/_knobs").json()["requests"] == 0


def test_what_has_finished_is_not_in_flight(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    turn(servers, fail_status=500, fail_match=CANBERRA)

    done = collect(command, output, servers, "--concurrency", "1")

    line = next(it for it in done.stderr.splitlines() if "/48 done" in it)
    assert "in flight" not in line
