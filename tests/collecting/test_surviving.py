"""What a collection outlasts: kills, dead servers, full disks, signals, other runs."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.observing import asked, keys, planned, turn, wait_for_lines

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def output(command: Run, tmp_path: Path) -> Path:
    """Give an output with 3 repeats of 24 tasks planned."""
    plan = ("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl")
    command(*plan, "--num-repeats", "3")
    return tmp_path / "r.jsonl"


def collect(output: Path, url: object, *options: str) -> list[str]:
    where = ["--output", str(output), "--head-url", str(url)]
    return ["collect", *where, "--concurrency", "4", *options]


def test_kills_lose_and_repeat_nothing(
    output: Path, servers: httpx.Client, command: Run, start: Start
) -> None:
    turn(servers, latency_ms=40)
    pauses = (0.5, 1.3, 0.7, 0.9, 1.1, 0.6, 1.2, 0.8)
    for pause in pauses:
        child = start(*collect(output, servers.base_url))
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        child.wait()

    assert command(*collect(output, servers.base_url)).returncode == 0

    assert keys(output) == planned(output)
    assert sum(asked(servers).values()) <= 72 + len(pauses) * 4


def test_a_signal_drains_running_work(
    output: Path, servers: httpx.Client, start: Start
) -> None:
    turn(servers, latency_ms=600)
    child = start(*collect(output, servers.base_url))
    wait_for_lines(output, 4)

    child.send_signal(signal.SIGTERM)

    assert child.wait(timeout=15) == 143
    assert keys(output) == asked(servers)


def test_a_second_signal_ends_at_once(
    output: Path, servers: httpx.Client, start: Start
) -> None:
    turn(servers, hang_match="largest ocean")  # task 1, right after task 0
    child = start(*collect(output, servers.base_url))
    wait_for_lines(output, 3)
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()

    child.send_signal(signal.SIGINT)

    assert child.wait(timeout=5) == 130
    assert time.monotonic() - started < 1


@contextmanager
def environment(port: int) -> Iterator[subprocess.Popen[bytes]]:
    line = [sys.executable, "-m", "reward_profiling.demo", "--port", str(port)]
    line += ["--latency-scale", "0.3"]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.communicate()


def test_a_restarted_server_costs_no_attempt(
    output: Path, free_port: int, start: Start
) -> None:
    url = f"http://127.0.0.1:{free_port}"
    with environment(free_port):
        child = start(*collect(output, url))
        wait_for_lines(output, 6)
    time.sleep(1)
    with environment(free_port):
        said, _ = child.communicate(timeout=60)

    assert child.returncode == 0, said
    assert f"{url} does not answer" in said
    assert f"{url} answers again" in said
    assert keys(output) == planned(output)
    assert output.with_name("r_failures.jsonl").read_bytes() == b""


def test_a_dead_server_leaves_rollouts_owed(
    output: Path, free_port: int, start: Start
) -> None:
    url = f"http://127.0.0.1:{free_port}"
    with environment(free_port):
        child = start(*collect(output, url, "--server-patience", "2"))
        wait_for_lines(output, 6)
    said, _ = child.communicate(timeout=60)

    assert child.returncode == 3
    assert f"{url} has not answered for" in said
    assert 0 < len(keys(output)) < 72
    assert output.with_name("r_failures.jsonl").read_bytes() == b""


def test_a_full_disk_keeps_whole_records(
    output: Path, servers: httpx.Client, command: Run, command_env: dict[str, str]
) -> None:
    limit = 20_000
    full = subprocess.run(
        [sys.executable, "-m", "reward_profiling", *collect(output, servers.base_url)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        env=command_env, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert full.returncode == 1, full.stderr
    assert f"{output} cannot be written" in full.stderr
    assert "Traceback" not in full.stderr
    assert 0 < len(keys(output)) < 72
    assert command(*collect(output, servers.base_url)).returncode == 0
    assert keys(output) == planned(output)


def test_shards_of_several_processes_merge(
    output: Path, servers: httpx.Client, command: Run, start: Start
) -> None:
    shards = [
        start(*collect(output, servers.base_url, "--shard", f"{index}/3"))
        for index in range(3)
    ]
    assert [child.wait(timeout=60) for child in shards] == [0, 0, 0]

    merged = command("merge", output)

    assert merged.returncode == 0, merged.stderr
    assert keys(output) == planned(output)
    assert set(asked(servers).values()) == {1}


def test_a_missing_shard_is_named(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    for index in (0, 2):
        command(*collect(output, servers.base_url, "--shard", f"{index}/3"))

    merged = command("merge", output)

    assert merged.returncode == 3
    assert "1/3" in merged.stderr
    assert "48 of 72" in merged.stdout


def test_another_shard_count_loses_nothing(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    command(*collect(output, servers.base_url, "--shard", "0/3"))
    command(*collect(output, servers.base_url, "--shard", "1/2"))

    assert command(*collect(output, servers.base_url)).returncode == 0

    assert keys(output) == planned(output)
    assert set(asked(servers).values()) == {1}


def test_the_whole_excludes_its_shards(
    output: Path, servers: httpx.Client, command: Run, start: Start
) -> None:
    turn(servers, latency_ms=2000)
    child = start(*collect(output, servers.base_url, "--shard", "0/2"))
    time.sleep(1.5)

    whole = command(*collect(output, servers.base_url))
    again = command(*collect(output, servers.base_url, "--shard", "0/2"))

    assert (whole.returncode, again.returncode) == (2, 2)
    assert f"pid {child.pid}" in whole.stderr
    assert f"pid {child.pid}" in again.stderr


DAMAGE = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 400), st.sampled_from([0, 503])),
    min_size=1,
    max_size=3,
)


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=DAMAGE)
def test_any_history_ends_in_the_plan(
    history: list[tuple[int, int, int]],
    servers: httpx.Client,
    command: Run,
    tmp_path: Path,
) -> None:
    output = tmp_path / f"{os.urandom(4).hex()}" / "r.jsonl"
    plan = ("materialize", "--input", EMBEDDED_TASKS, "--output", output)
    command(*plan, "--num-repeats", "2")
    for failures, cut, status in history:
        turn(servers, fail_status=status, fail_first=failures)
        command(*collect(output, servers.base_url, "--retries", "0"))
        os.truncate(output, max(0, output.stat().st_size - cut))
    turn(servers, fail_status=0)

    command(*collect(output, servers.base_url, "--retry-given-up"))

    assert keys(output) == planned(output)


def test_a_server_may_say_anything(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    said = '{"_ng_failure_class": "[/judge]", "_ng_failure_message": "[bold]x[/"}'
    turn(servers, raw_reply_match="capital of Australia", raw_reply=said)

    done = command(*collect(output, servers.base_url))

    assert done.returncode == 3, done.stderr
    assert "[/judge]" in done.stderr
    assert len(keys(output)) == 69
