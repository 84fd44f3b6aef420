import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from reward_profiling.servers.starting import guardian

PIPE = subprocess.PIPE
Start = Callable[..., "subprocess.Popen[bytes]"]

# Says who it is, and stays until it is interrupted.
STAY = "echo started $$; trap 'echo stopped; exit 7' INT; while :; do sleep 0.02; done"
# Will not hear of an interrupt.
STUBBORN = "trap '' INT; echo started $$; while :; do sleep 0.02; done"
# Leaves a child in its session, and one that makes a session of its own.
FAMILY = "sleep 60 & echo child $!; setsid sleep 60 & sleep 0.1; echo started $$; "

# An owner that starts a guardian as the product does, and lives on.
OWNER = """
import asyncio, pathlib, sys
from reward_profiling.servers.starting.child_processes import guarded_command
async def own():
    async with guarded_command(sys.argv[2:], pathlib.Path(sys.argv[1])):
        await asyncio.sleep(60)
asyncio.run(own())
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "servers.log"


@pytest.fixture
def start(log: Path) -> Iterator[Start]:
    """Give a way to run a shell script under a guardian."""
    with ExitStack() as stack:

        def started(script: str, grace: float = 5.0) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-I", guardian.__file__, str(grace), str(log)]
            child = subprocess.Popen([*command, "/bin/bash", "-c", script], stdin=PIPE)
            return stack.enter_context(child)

        yield started


def until(is_so: Callable[[], bool], seconds: float = 8.0) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


def said(log: Path, words: str) -> Callable[[], bool]:
    return lambda: log.exists() and words in log.read_text()


def pid_after(log: Path, word: str) -> int:
    (line,) = [one for one in log.read_text().splitlines() if one.startswith(word)]
    return int(line.split()[1])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def sleepers(parent: Path) -> list[int]:
    """Find the processes whose environment carries the test's mark."""
    mark = f"GUARDIAN_TEST={parent}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes() and is_running(int(entry.parent.name)):
                found.append(int(entry.parent.name))
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3)])
def test_the_exit_code_is_passed_on(start: Start, script: str, code: int) -> None:
    assert start(script).wait(timeout=5) == code


def test_a_signal_gives_the_shells_exit_code(start: Start) -> None:
    assert start("kill -9 $$").wait(timeout=5) == 128 + signal.SIGKILL


def test_everything_printed_is_in_the_log(start: Start, log: Path) -> None:
    log.write_text("earlier\n")

    start("echo out; echo err >&2").wait(timeout=5)

    assert log.read_text() == "earlier\nout\nerr\n"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("no-such-command", 127, "no-such-command cannot be run: No such file"),
        ("/", 126, "/ cannot be run: Permission denied"),
    ],
)
def test_a_command_that_cannot_run_is_logged(
    log: Path, name: str, code: int, words: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-I", guardian.__file__, "1", str(log), name],
        stdin=PIPE, capture_output=True, check=False, timeout=10,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (code, b"")
    assert log.read_text().startswith(words)


def test_closing_its_input_interrupts_it(start: Start, log: Path) -> None:
    child = start(STAY)
    assert until(said(log, "started"))

    child.communicate(timeout=5)

    assert child.returncode == 0
    assert said(log, "stopped")()
    assert not is_running(pid_after(log, "started"))


def test_an_ignored_interrupt_ends_in_a_kill(start: Start, log: Path) -> None:
    child = start(STUBBORN, grace=0.3)
    assert until(said(log, "started"))
    let_go = time.monotonic()

    child.communicate(timeout=5)

    assert 0.3 <= time.monotonic() - let_go < 3
    assert not is_running(pid_after(log, "started"))


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGHUP)])
def test_signals_to_the_guardian_do_nothing(
    start: Start, log: Path, signals: tuple[signal.Signals, ...]
) -> None:
    child = start(STAY)
    assert until(said(log, "started"))

    for number in signals:
        child.send_signal(number)
    time.sleep(0.2)

    assert child.poll() is None
    assert is_running(pid_after(log, "started"))


@pytest.mark.parametrize("ending", ["exit 0", "while :; do sleep 0.02; done"])
def test_nothing_started_is_left(
    start: Start, log: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("GUARDIAN_TEST", str(log))
    child = start(FAMILY + ending, grace=0.2)
    assert until(said(log, "started"))

    child.communicate(timeout=8)

    assert not is_running(pid_after(log, "child"))
    assert until(lambda: sleepers(log) == [], 2)


def test_orphans_are_not_left_as_zombies(start: Start, log: Path) -> None:
    child = start("(sleep 0.1 & echo orphan $!); " + STAY)
    assert until(said(log, "started"))

    orphan = Path(f"/proc/{pid_after(log, 'orphan')}")

    assert until(lambda: not orphan.exists(), 3)
    assert child.poll() is None


def test_the_command_dies_with_its_owner(log: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(log), "/bin/bash", "-c", STAY]
    with subprocess.Popen(command) as owner:
        assert until(said(log, "started"))

        os.kill(owner.pid, signal.SIGKILL)

    assert until(said(log, "stopped"))
    assert until(lambda: not is_running(pid_after(log, "started")))


@pytest.mark.parametrize("look", [guardian.seen_descendants, guardian.descendants])
def test_every_threads_children_are_seen(
    look: Callable[[int], set[int]],
) -> None:
    with ThreadPoolExecutor(1) as pool, subprocess.Popen(["/bin/sleep", "60"]) as own:
        line = ["/bin/bash", "-c", "setsid sleep 60 & echo $!; wait"]
        middle = pool.submit(subprocess.Popen, line, stdout=PIPE).result()
        with middle:
            assert middle.stdout is not None
            grandchild = int(middle.stdout.readline())

            assert look(os.getpid()) >= {own.pid, middle.pid, grandchild}
            assert look(middle.pid) == {grandchild}

            os.kill(grandchild, signal.SIGKILL)
        assert not look(os.getpid()) & {middle.pid, grandchild}
        own.kill()


def test_a_folder_is_deleted_once_unused(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "file").write_text("x")
    line = [sys.executable, "-I", guardian.__file__, guardian.REMOVE, str(folder)]
    script = f"{STAY.replace('echo stopped', f'ls {folder}')}"
    child = subprocess.Popen(
        [*line, "5", str(log), "/bin/bash", "-c", script], stdin=PIPE
    )
    assert until(said(log, "started"))

    child.communicate(timeout=8)

    assert log.read_text().endswith("file\n")
    assert not folder.exists()


def test_a_log_is_for_its_owner_only(start: Start, log: Path) -> None:
    start("exit 0").wait(timeout=5)

    assert log.stat().st_mode & 0o777 == 0o600
