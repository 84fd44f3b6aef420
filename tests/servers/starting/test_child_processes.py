import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.errors import ServersNotReadyError
from reward_profiling.servers.starting.child_processes import (
    Family,
    embedded_environment,
    free_port,
    guarded_command,
    last_lines,
)
from tests.observing import HTTP

SHELL = ("/bin/bash", "-c")
STAY = "echo started $$; trap 'echo stopped; exit' INT; while :; do sleep 0.02; done"
STUBBORN = "trap '' INT; echo started $$; while :; do sleep 0.02; done"
OWNER = """
import asyncio
from reward_profiling.servers.starting.child_processes import embedded_environment
async def own():
    async with embedded_environment() as url:
        print(url, flush=True)
        await asyncio.sleep(60)
asyncio.run(own())
"""
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "servers.log"


def is_up(url: str) -> bool:
    try:
        return HTTP.get(f"{url}/readyz").is_success
    except httpx.TransportError:
        return False


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 8
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


def text(log: Path) -> str:
    return log.read_text() if log.exists() else ""


def wait_for_pid(log: Path) -> int:
    """Wait until the command has said who it is."""
    assert until(lambda: text(log).endswith("\n"))
    return int(text(log).split()[1])


async def pid_in(log: Path) -> int:
    return await asyncio.to_thread(wait_for_pid, log)


def session_of(url: str) -> int:
    instances = HTTP.get(f"{url}/server_instances").json()
    return os.getsid(instances[0]["pid"])


# The embedded environment.


async def test_the_environment_lives_for_its_block() -> None:
    async with embedded_environment() as url:
        assert is_up(url)

    assert not is_up(url)


async def test_an_exception_ends_the_environment() -> None:
    with pytest.raises(RuntimeError, match="ours"):
        async with embedded_environment() as url:
            raise RuntimeError("ours")

    assert not is_up(url)


async def test_the_environment_takes_options() -> None:
    port = free_port()

    async with embedded_environment(["--port", str(port)]) as url:
        assert url == f"http://127.0.0.1:{port}"


async def test_a_failed_environment_says_why() -> None:
    with pytest.raises(ServersNotReadyError, match="--model-url must start with http"):
        async with embedded_environment(["--model-url", "host", "--model", "m"]):
            pass


async def test_a_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        with pytest.raises(ServersNotReadyError, match="Address already in use"):
            async with embedded_environment(["--port", port]):
                pass


async def test_local_files_called_tasks_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)

    async with embedded_environment() as url:
        assert is_up(url)


async def test_the_environment_is_not_interrupted() -> None:
    async with embedded_environment() as url:
        assert session_of(url) != os.getsid(0)


def test_the_environment_dies_with_its_owner() -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        assert is_up(url)

        owner.kill()

    assert until(lambda: not is_up(url))


# A command under its guardian.


async def test_a_command_lives_for_its_block(log: Path) -> None:
    async with guarded_command([*SHELL, STAY], log):
        pid = await pid_in(log)
        assert is_running(pid)

    assert not is_running(pid)
    assert text(log).endswith("stopped\n")


async def test_an_exception_ends_a_command(log: Path) -> None:
    async def own() -> None:
        async with guarded_command([*SHELL, STAY], log):
            await pid_in(log)
            raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        await own()

    assert not is_running(await pid_in(log))


async def test_the_exit_code_of_a_command_is_seen(log: Path) -> None:
    async with guarded_command([*SHELL, "echo why; exit 3"], log) as child:
        assert await asyncio.wait_for(child.wait(), 5) == 3

    assert text(log) == "why\n"


async def test_a_cancellation_waits_for_the_command(log: Path) -> None:
    async def own() -> None:
        async with guarded_command([*SHELL, STUBBORN], log, grace_seconds=0.3):
            await asyncio.Event().wait()

    owning = asyncio.create_task(own())
    pid = await pid_in(log)
    owning.cancel()
    await asyncio.sleep(0.1)
    owning.cancel()  # a second one, while it is stopping
    await asyncio.wait([owning])

    assert owning.cancelled()
    assert not is_running(pid)


async def test_a_missing_command_is_in_the_log(log: Path) -> None:
    async with guarded_command(["no-such-gym", "env", "start"], log) as child:
        assert await asyncio.wait_for(child.wait(), 5) == 127

    assert "no-such-gym cannot be run" in text(log)


# Small things.


def test_only_new_log_lines_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier start\n")
    before = log.stat().st_size
    log.write_text("of an earlier start\nof this one\n")

    assert last_lines(log, since=before) == "of this one"
    assert last_lines(log, since=log.stat().st_size) == ""


def test_the_last_lines_of_a_log_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_lines(log) == ""

    log.write_bytes(b"\xff" + b"x" * 20_000 + b"\n" + b"a\nb\nc")

    assert last_lines(log, 2) == "b\nc"


def test_a_free_port_can_be_listened_at() -> None:
    with socket.create_server(("127.0.0.1", free_port())):
        pass


LEAVER = """
import subprocess, sys, time
from reward_profiling.servers.starting.child_processes import leftovers_stopped
with leftovers_stopped():
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    print(child.pid, flush=True)
    time.sleep({seconds})
"""


def test_what_others_started_dies_with_us() -> None:
    command = [sys.executable, "-c", LEAVER.format(seconds=60)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        time.sleep(1.5)  # the watcher looks once a second
        owner.kill()

    assert until(lambda: not is_running(pid))


def test_what_a_process_leaves_is_not_touched() -> None:
    command = [sys.executable, "-c", LEAVER.format(seconds=1.5)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())

    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


# Whether processes have ended.


def test_an_ended_family_member_is_missed() -> None:
    family = Family(os.getpid())
    middle = subprocess.Popen([*SHELL, "sleep 60 & echo $!; wait"], stdout=-1)
    assert middle.stdout is not None
    grandchild = int(middle.stdout.readline())
    assert not family.has_lost(middle.pid)
    assert not family.has_lost(grandchild)

    os.kill(grandchild, signal.SIGKILL)
    os.waitid(os.P_PID, middle.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now

    assert family.has_lost(middle.pid)
    middle.communicate()
    assert family.has_lost(middle.pid)
    assert family.has_lost(grandchild)


def test_foreign_processes_are_never_missed() -> None:
    with subprocess.Popen([*SHELL, "sleep 60"]) as child:
        family = Family(child.pid)
        assert not family.has_lost(os.getpid())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        # A number that was never seen in the family may be one of another machine.
        assert not family.has_lost(2**22 - 1)
        assert not Family(os.getppid()).has_lost(1)
