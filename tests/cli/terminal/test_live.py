"""What a person sees: in a terminal, and where the output goes to a file."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]

COMMAND = str(Path(sys.executable).with_name("reward-profiling"))
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


STARTING = """
import time
from reward_profiling.cli.terminal.live import Live
from reward_profiling.servers.server_states import ServerState
live = Live()
with live.showing():
    for seconds in (1.0, 2.0):
        states = [ServerState("math", "starting", seconds),
                  ServerState("head server", "waiting for its servers", seconds)]
        live.observe_servers(states)
        time.sleep(0.3)
    live.observe_servers([ServerState("math", "ready", 3.0), states[1]])
    time.sleep(0.3)
    live.observe_servers([ServerState("math", "ready", 3.0),
                        ServerState("head server", "ready", 4.0)])
"""


def seen_in_terminal(
    arguments: list[str], cwd: Path, env: dict[str, str], command: str = COMMAND
) -> str:
    """Run the command in a terminal of 80 columns and return what it drew."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    env = {name: value for name, value in env.items() if name != "COLUMNS"}
    child = subprocess.Popen(
        [command, *arguments], cwd=cwd, env={**env, "TERM": "xterm-256color"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 65536):
            drawn += chunk
    except OSError:  # how a terminal says that the other end is closed
        pass
    child.wait(timeout=10)
    os.close(ours)
    return drawn.decode()


@pytest.fixture
def collecting(command: Run, servers: httpx.Client) -> list[str]:
    """Give the arguments that collect 3 repeats of 24 tasks, slowly."""
    command("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl",
            "--num-repeats", "3")  # fmt: skip
    servers.post("/_knobs", json={"latency_ms": 100}).raise_for_status()
    return ["collect", "--output", "r.jsonl", "--head-url", str(servers.base_url),
            "--concurrency", "8"]  # fmt: skip


def test_a_terminal_shows_a_progress_bar(
    collecting: list[str], tmp_path: Path, command_env: dict[str, str]
) -> None:
    drawn = seen_in_terminal(collecting, tmp_path, command_env)

    lines = re.split(r"[\r\n]+", MOVES.sub("", drawn))
    bars = [line for line in lines if "━" in line]
    assert re.search(r"━ +\d+/72 · mean reward \d\.\d{3}", bars[0])
    assert re.search(r"\(n=\d+\) · .*\d:\d\d left", bars[len(bars) // 2])
    assert "72/72" in bars[-1]
    assert max(map(len, lines)) <= 80
    assert "72 of 72 rollouts collected" in lines


def test_a_file_gets_a_few_plain_lines(collecting: list[str], command: Run) -> None:
    done = command(*collecting)

    assert "\x1b" not in done.stdout + done.stderr
    assert "━" not in done.stdout + done.stderr
    assert 2 <= len(done.stderr.splitlines()) <= 5
    assert "72/72 done" in done.stderr


def test_a_terminal_shows_starting_servers(
    tmp_path: Path, command_env: dict[str, str]
) -> None:
    drawn = seen_in_terminal(["-c", STARTING], tmp_path, command_env, sys.executable)
    said = MOVES.sub("", drawn)

    assert "math: starting (1 s)" in said
    assert "math: starting (2 s)" in said
    assert "math: ready after 3 s" in said
    assert "head server: waiting for its servers (2 s)" in said
    assert "all 2 servers are ready" in said


def test_elsewhere_a_state_change_is_a_line(
    command_env: dict[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTING],
        env=command_env, capture_output=True, text=True, check=True, timeout=20,
    )  # fmt: skip

    assert done.stderr.splitlines() == [
        "  math: starting (1 s)",
        "  head server: waiting for its servers (1 s)",
        "  math: ready after 3 s",
        "  head server: ready after 4 s",
    ]
