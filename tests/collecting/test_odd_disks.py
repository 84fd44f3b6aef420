"""Disks that say so late, plans that were cut, outputs that are no files."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.files.locking.lock_holder import LEASE_SECONDS
from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.observing import asked, keys, planned, turn, wait_for_lines

Run = Callable[..., subprocess.CompletedProcess[str]]
# The operating system's call fails once, as a network disk's does when it is full.
FAILING_ONCE = """
import errno, os
real, calls = os.fdatasync, []
def fail_once(descriptor):
    calls.append(descriptor)
    if len(calls) == 1:
        raise OSError(errno.{code}, os.strerror(errno.{code}))
    real(descriptor)
os.fdatasync = fail_once
from reward_profiling.cli.entry import main
main()
"""


@pytest.fixture
def output(command: Run, tmp_path: Path) -> Path:
    """Give an output with 3 repeats of 24 tasks planned."""
    plan = ("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl")
    command(*plan, "--num-repeats", "3")
    return tmp_path / "r.jsonl"


def collect(output: Path, servers: httpx.Client) -> list[str]:
    return ["collect", "--output", str(output), "--head-url", str(servers.base_url)]


@pytest.mark.parametrize("code", ["ENOSPC", "EIO", "EDQUOT"])
def test_a_failed_sync_ends_the_run_by_name(
    output: Path,
    servers: httpx.Client,
    command: Run,
    command_env: dict[str, str],
    code: str,
) -> None:
    turn(servers, latency_ms=400)
    script = FAILING_ONCE.format(code=code)
    done = subprocess.run(
        [sys.executable, "-c", script, *collect(output, servers), "--concurrency", "2"],
        env=command_env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert f"{output} cannot be written: " in done.stderr
    assert "Traceback" not in done.stderr
    assert len(output.read_bytes().splitlines()) < 72  # at once, not at the end

    turn(servers, latency_ms=0)
    assert command(*collect(output, servers)).returncode == 0
    assert keys(output) == planned(output)


def cut(path: Path, left: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:left]))


@pytest.mark.parametrize("left", [0, 40])
def test_a_cut_plan_is_not_called_whole(
    output: Path, servers: httpx.Client, command: Run, left: int
) -> None:
    plan = output.with_name("r_materialized_inputs.jsonl")
    assert command(*collect(output, servers)).returncode == 0
    whole, before = plan.read_bytes(), output.read_bytes()
    cut(plan, left)

    for line in (
        collect(output, servers),
        ["profile", "--rollouts", output, "--allow-partial"],
        ["inspect", output],
        ["merge", output],
    ):
        done = command(*line)
        assert done.returncode == 2, done.stdout
        assert f"{plan} was cut: {72 - left} of 72 planned" in done.stderr
    assert output.read_bytes() == before

    again = ("materialize", "--input", EMBEDDED_TASKS, "--output", output)
    assert command(*again, "--num-repeats", "3").returncode == 0
    assert plan.read_bytes() == whole
    assert command("profile", "--rollouts", output).returncode == 0


def test_a_shard_of_a_cut_plan_is_refused(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    cut(output.with_name("r_materialized_inputs.jsonl"), 70)

    last = command(*collect(output, servers), "--shard", "1/2")

    assert last.returncode == 2
    assert "1 of 36 planned rollouts are missing" in last.stderr
    assert not asked(servers)


@pytest.mark.parametrize("kind", ["/dev/full", "/dev/null", "fifo"])
def test_an_output_that_is_no_file_is_refused(
    command: Run, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "fifo" if kind == "fifo" else Path(kind)
    if kind == "fifo":
        os.mkfifo(path)

    for line in (
        ["materialize", "--input", EMBEDDED_TASKS, "--output", path],
        ["collect", "--output", path, "--head-url", "http://127.0.0.1:9"],
        ["run", "--demo", "--output", path],
        ["profile", "--rollouts", path],
    ):
        done = command(*line)
        assert done.returncode == 2, done.stderr
        assert f"{path} is no regular file" in done.stderr


# Another machine, as far as the lock can tell: its boot id, and no locks of the system.
ELSEWHERE = """
import fcntl
from pathlib import Path
from reward_profiling.files.locking import lock_holder
fcntl.flock = lambda *_: None
lock_holder._BOOT = Path({boot!r})
from reward_profiling.cli.entry import main
main()
"""


def test_a_holder_that_lost_its_lease_stops(
    output: Path, servers: httpx.Client, command_env: dict[str, str], tmp_path: Path
) -> None:
    def on_machine(name: str) -> list[str]:
        boot = tmp_path / name
        boot.write_text(name)
        script = ELSEWHERE.format(boot=str(boot))
        line = [*collect(output, servers), "--concurrency", "4"]
        return [sys.executable, "-c", script, *line]

    turn(servers, latency_ms=500)
    with subprocess.Popen(
        on_machine("one"), env=command_env, stderr=subprocess.PIPE, text=True
    ) as stopped:
        wait_for_lines(output, 8)
        stopped.send_signal(signal.SIGSTOP)
        lock = output.with_name(f".{output.name}.lock")
        past = time.time() - 2 * LEASE_SECONDS
        os.utime(lock, (past, past))
        turn(servers, latency_ms=0)
        other = subprocess.run(
            on_machine("two"), env=command_env, check=False, capture_output=True
        )
        time.sleep(LEASE_SECONDS / 6)  # as long as the first does not look again
        stopped.send_signal(signal.SIGCONT)
        said = stopped.communicate(timeout=60)[1]

    assert other.returncode == 0, other.stderr
    assert stopped.returncode == 1, said
    assert f"the lock {lock} is gone: another run took it and has ended" in said
    assert keys(output) == planned(output)
    assert asked(servers).total() <= 72 + 4
