"""`collect`, against a real embedded environment."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.conftest import COMMAND
from tests.observing import asked, keys, planned, turn, wait_for_lines

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

CANBERRA = "capital of Australia"  # a word of the first task


@pytest.fixture
def plan(command: Run, tmp_path: Path) -> Path:
    """Give an output with 3 repeats of 24 tasks planned."""
    command("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl",
            "--num-repeats", "3")  # fmt: skip
    return tmp_path / "r.jsonl"


def collect(output: Path, servers: httpx.Client, *options: str) -> list[str]:
    url = str(servers.base_url)
    return ["collect", "--output", str(output), "--head-url", url, *options]


def test_a_whole_collection_exits_with_0(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    done = command(*collect(plan, servers))

    assert (done.returncode, done.stdout) == (
        0,
        f"72 of 72 rollouts collected\n  {plan}\n",
    )
    assert keys(plan) == planned(plan) == asked(servers)


def test_the_same_command_asks_for_nothing(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    command(*collect(plan, servers))
    before = plan.read_bytes()

    assert command(*collect(plan, servers)).returncode == 0

    assert plan.read_bytes() == before
    assert asked(servers) == planned(plan)


def test_failures_exit_with_3_and_are_retried(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    turn(servers, fail_status=500, fail_match=CANBERRA)
    options = ["--retries", "0"]

    first = command(*collect(plan, servers, *options))
    turn(servers, fail_status=0)
    second = command(*collect(plan, servers, *options))

    assert (first.returncode, second.returncode) == (3, 0)
    assert first.stdout.startswith("69 of 72 rollouts collected\n")
    assert keys(plan) == planned(plan)
    failed = {"0:0": 2, "0:1": 2, "0:2": 2}
    assert asked(servers) == {**planned(plan), **failed}


def test_shards_end_in_one_file(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    done = command(*collect(plan, servers, "--num-shards", "3"))

    assert done.returncode == 0, done.stderr
    assert keys(plan) == planned(plan) == asked(servers)
    assert list(plan.parent.glob("*-shard-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_the_rest_is_asked_for(
    command: Run, start: Start, plan: Path, servers: httpx.Client, number: int
) -> None:
    turn(servers, hang_match=CANBERRA)
    child = start(*collect(plan, servers))
    wait_for_lines(plan, 69)

    child.send_signal(number)
    said, _ = child.communicate(timeout=15)
    turn(servers, hang_match="")
    rest = command(*collect(plan, servers))

    assert (child.returncode, rest.returncode) == (128 + number, 0)
    assert said.splitlines()[-1].endswith("run the same command again to do the rest")
    assert "Traceback" not in said
    assert keys(plan) == planned(plan)
    in_flight = {"0:0": 2, "0:1": 2, "0:2": 2}
    assert asked(servers) == {**planned(plan), **in_flight}


def test_under_nohup_a_hangup_is_ignored(
    command_env: dict[str, str], plan: Path, servers: httpx.Client
) -> None:
    turn(servers, latency_ms=150.0)
    line = ["nohup", COMMAND, *collect(plan, servers)]
    with subprocess.Popen(
        line, env=command_env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        wait_for_lines(plan, 10)
        child.send_signal(signal.SIGHUP)
        child.communicate(timeout=60)

    assert child.returncode == 0
    assert keys(plan) == planned(plan)


def test_a_kill_loses_and_repeats_no_rollout(
    command: Run, start: Start, plan: Path, servers: httpx.Client
) -> None:
    turn(servers, latency_ms=150.0)
    child = start(*collect(plan, servers, "--concurrency", "8"))
    wait_for_lines(plan, 10)

    child.kill()
    child.wait(timeout=10)
    turn(servers, latency_ms=0.0)
    assert command(*collect(plan, servers)).returncode == 0

    assert keys(plan) == planned(plan)
    repeated = [key for key, times in asked(servers).items() if times > 1]
    assert len(repeated) <= 8  # no more than were in flight


def test_a_torn_line_is_asked_for_again(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    command(*collect(plan, servers))
    plan.write_bytes(plan.read_bytes()[:-40])

    assert command(*collect(plan, servers)).returncode == 0

    assert keys(plan) == planned(plan)
    assert sorted(asked(servers).values())[-2:] == [1, 2]
    assert plan.with_name("r.damaged.jsonl").exists()


def test_a_second_run_is_told_of_the_first(
    command: Run, start: Start, plan: Path, servers: httpx.Client
) -> None:
    turn(servers, hang_match=CANBERRA)
    child = start(*collect(plan, servers))
    wait_for_lines(plan, 69)
    before = plan.read_bytes()

    done = command(*collect(plan, servers))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"pid {child.pid} on {socket.gethostname()}, since 20" in done.stderr
    assert plan.read_bytes() == before


def test_absent_servers_are_a_failure(command: Run, plan: Path) -> None:
    url = "http://127.0.0.1:9"

    done = command("collect", "--output", plan, "--head-url", url,
                   "--start-timeout", "0.5")  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert f"the head server {url} was not ready within 0.5 s" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_agent_gets_a_suggestion(
    command: Run, tmp_path: Path, servers: httpx.Client
) -> None:
    command("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl",
            "--agent-name", "exact_mach_agent")  # fmt: skip

    done = command(*collect(tmp_path / "r.jsonl", servers))

    assert (done.returncode, done.stdout) == (2, "")
    assert "exact_mach_agent" in done.stderr
    assert re.search(r"did you mean '?exact_match_agent", done.stderr)
    assert asked(servers) == {}


def test_it_works_from_any_folder(
    command: Run, plan: Path, servers: httpx.Client
) -> None:
    elsewhere = plan.parent / "anderswo"
    elsewhere.mkdir()

    done = command(
        *collect(Path(os.pardir) / plan.name, servers, "--concurrency", "3"),
        cwd=elsewhere,
    )

    assert done.returncode == 0, done.stderr
    assert keys(plan) == planned(plan)
    assert list(elsewhere.iterdir()) == []
    assert servers.get("/_knobs").json()["max_in_flight"] <= 3
