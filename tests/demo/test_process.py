import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import orjson
import pytest

from tests.observing import HTTP

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "reward_profiling.demo"]
PIPE = subprocess.PIPE

# An owner that starts the environment, passes its line on, and lives on.
OWNER = """
import subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-m", "reward_profiling.demo", "--watch-stdin"],
    stdin=subprocess.PIPE,
)
time.sleep(60)
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Give a way to start a process, which the test has to end."""
    with ExitStack() as stack:

        def started(*command: str) -> subprocess.Popen[bytes]:
            child = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
            return stack.enter_context(child)

        yield started


def url_of(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None
    url = orjson.loads(child.stdout.readline())["url"]
    assert isinstance(url, str)
    return url


def is_up(url: str) -> bool:
    try:
        return HTTP.get(f"{url}/readyz").is_success
    except httpx.TransportError:
        return False


def is_gone_within(url: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_up(url) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_up(url)


def test_one_line_says_where_it_listens(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    child = start(*COMMAND)

    assert is_up(url_of(child))

    child.terminate()
    out, _ = child.communicate(timeout=5)
    assert out == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(
    start: Callable[..., subprocess.Popen[bytes]], number: signal.Signals
) -> None:
    child = start(*COMMAND)
    assert is_up(url_of(child))
    sent = time.monotonic()

    child.send_signal(number)

    assert child.wait(timeout=5) == 0
    assert time.monotonic() - sent < 1.5


def test_closing_its_input_ends_it(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    child = start(*COMMAND, "--watch-stdin")
    url = url_of(child)
    with httpx.Client(base_url=url, trust_env=False) as client:
        client.post("/_knobs", json={"hang_match": "{"})
        with pytest.raises(httpx.ReadTimeout):
            client.post("/run", content="{}", timeout=0.1)

        child.communicate(timeout=5)

    assert child.returncode == 0


def test_unwatched_it_needs_no_input(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    child = start(*COMMAND)
    assert child.stdin is not None
    url = url_of(child)

    child.stdin.close()
    time.sleep(0.2)

    assert is_up(url)
    child.terminate()


def test_it_ends_with_a_killed_owner(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    owner = start(sys.executable, "-c", OWNER)
    url = url_of(owner)
    assert is_up(url)

    os.kill(owner.pid, signal.SIGKILL)

    assert is_gone_within(url, 5)


def test_a_port_can_be_asked_for(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    first = start(*COMMAND)
    url = url_of(first)
    first.terminate()
    first.wait(timeout=5)

    second = start(*COMMAND, "--port", url.rpartition(":")[2])

    assert url_of(second) == url
    second.terminate()


@pytest.mark.parametrize(
    "options",
    [["--model-url", "host:8000", "--model", "m"], ["--model-url", "http://h"]],
)
def test_a_bad_endpoint_is_refused_at_once(
    options: list[str],
) -> None:
    done = subprocess.run(
        [*COMMAND, *options], cwd=ROOT, capture_output=True, check=False, timeout=10
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--model" in done.stderr
