import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from hypothesis import settings

# A busy machine is no reason for a property to fail.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("reward-profiling"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait longest: the others fill the gaps beside them."""
    slow = ("test_outlasting", "test_spreading", "test_deployed", "test_interruption")
    places = {name: place for place, name in enumerate(slow)}

    def place(item: pytest.Item) -> tuple[bool, int]:
        return "dag" not in item.path.parts, places.get(item.path.stem, len(slow))

    items.sort(key=place)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Prefect's servers and workers when the tests that use them are done.

    They would live as long as the process, at a tenth of a core each.
    """
    living = sys.modules.get("tests.dag.living")
    is_last = nextitem is not None and "dag" not in nextitem.path.parts
    if living is not None and "dag" in item.path.parts and is_last:
        living.end_all()


@pytest.fixture(scope="session")
def command_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give an environment with an empty home and nothing of this machine's Prefect."""
    kept = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    home = tmp_path_factory.mktemp("home")
    return {**env, "HOME": str(home), "COLUMNS": "80", "PYTHONUTF8": "1"}


@pytest.fixture
def command(
    tmp_path: Path, command_env: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give a way to run the installed command to its end, in the test's folder."""

    def run(
        *arguments: str | Path, cwd: Path = tmp_path, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=cwd, env={**command_env, **env}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    return run


@pytest.fixture
def start(
    tmp_path: Path, command_env: dict[str, str]
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Give a way to start the installed command; what is left of it is killed."""
    with ExitStack() as stack:

        def started(*arguments: str | Path, **env: str) -> subprocess.Popen[str]:
            child = subprocess.Popen(
                [COMMAND, *map(str, arguments)],
                cwd=tmp_path, env={**command_env, **env}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            stack.enter_context(child)
            stack.callback(child.send_signal, signal.SIGKILL)
            return child

        yield started


@contextmanager
def _running(*options: str) -> Iterator[httpx.Client]:
    line = [sys.executable, "-m", "reward_profiling.demo", "--watch-stdin", *options]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(line, stdin=pipe, stdout=pipe, cwd=ROOT) as child,
        ExitStack() as stack,
    ):
        assert child.stdout is not None
        url = orjson.loads(child.stdout.readline())["url"]
        client = httpx.Client(base_url=url, trust_env=False, timeout=10)
        yield stack.enter_context(client)
        child.communicate(timeout=10)


@pytest.fixture
def servers() -> Iterator[httpx.Client]:
    """Give a client of an embedded environment that answers at once."""
    with _running("--latency-scale", "0") as client:
        yield client


@pytest.fixture
def free_port() -> int:
    """Give a loopback port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
