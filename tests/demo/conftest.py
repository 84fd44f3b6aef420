import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import orjson
import pytest

TOKEN = {"REWARD_PROFILING_DEMO_TOKEN": "of-this-test"}
WITH_TOKEN = {"Authorization": "Bearer of-this-test"}
ROOT = Path(__file__).parents[2]
KNOBS_OFF = {
    "latency_ms": -1.0,
    "fail_status": 0,
    "fail_match": "",
    "fail_first": 0,
    "fail_body": '"scripted failure"',
    "retry_after": "",
    "hang_match": "",
    "drop_match": "",
    "raw_reply_match": "",
    "raw_reply": "",
    "pad_bytes": 0,
}


@contextmanager
def running(*options: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """Run the embedded environment and give its URL."""
    command = [sys.executable, "-m", "reward_profiling.demo", "--watch-stdin", *options]
    env = {**(os.environ if env is None else env), **TOKEN}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT, env=env) as child:
        assert child.stdout is not None
        yield orjson.loads(child.stdout.readline())["url"]
        child.communicate(timeout=10)
    assert child.returncode == 0


@pytest.fixture(scope="session")
def demo_url() -> Iterator[str]:
    with running("--latency-scale", "0") as url:
        yield url


@pytest.fixture
def demo(demo_url: str) -> Iterator[httpx.Client]:
    """Give a client of the environment, all knobs off."""
    with httpx.Client(base_url=demo_url, trust_env=False, timeout=10) as client:
        client.post("/_knobs", json=KNOBS_OFF).raise_for_status()
        yield client


@pytest.fixture
def launch() -> Iterator[Callable[..., httpx.Client]]:
    """Give a way to run another environment, with options of its own."""
    with ExitStack() as stack:

        def launched(*options: str, env: dict[str, str] | None = None) -> httpx.Client:
            url = stack.enter_context(running(*options, env=env))
            client = httpx.Client(
                base_url=url, trust_env=False, timeout=10, headers=WITH_TOKEN
            )
            return stack.enter_context(client)

        yield launched


@pytest.fixture(scope="session")
def task_rows() -> list[dict[str, object]]:
    path = ROOT / "reward_profiling" / "demo" / "tasks.jsonl"
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
