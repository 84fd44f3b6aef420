import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from tests.dag.living import COMMAND, Deployed, Hook, Workers

START_SECONDS = 90.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _prefect_server(home: Path) -> Iterator[tuple[str, int]]:
    """Run a Prefect server with a database of its own; give its API and its pid."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}/api"
    env = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    env |= {
        "HOME": str(home),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_API_PORT": str(port),  # the page asks the API there
        "PREFECT_UI_API_URL": url,
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_healthy(url, server)
        yield url, server.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health", trust_env=False).is_success:
                return
        assert server.poll() is None, "Prefect's server ended while it started"
        assert time.monotonic() < deadline, "Prefect's server did not start in time"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def api_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the API of a Prefect server that lives as long as the tests."""
    with (
        _prefect_server(tmp_path_factory.mktemp("prefect")) as (url, _),
        temporary_settings(
            {
                PREFECT_API_URL: url,
                # Its thread would make each flow run a second longer.
                PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
                # Its thread would outlive the server, and complain at the very end.
                PREFECT_LOGGING_TO_API_ENABLED: False,
            }
        ),
    ):
        yield url


@pytest.fixture
def mortal_server(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Give the API and the pid of a Prefect server that may be killed."""
    home = tmp_path / "prefect"
    home.mkdir()
    with _prefect_server(home) as server:
        yield server


@pytest.fixture
def found(api_url: str) -> Callable[..., list[dict[str, object]]]:
    """Give a way to list what the server holds: `found("task_runs", {…filter})`."""

    def listed(what: str, wanted: dict[str, object]) -> list[dict[str, object]]:
        reply = httpx.post(f"{api_url}/{what}/filter", json=wanted, trust_env=False)
        rows: list[dict[str, object]] = reply.raise_for_status().json()
        return rows

    return listed


@pytest.fixture(scope="session")
def hook() -> Iterator[Hook]:
    """Give a webhook that is listening."""
    receiver = Hook()
    thread = threading.Thread(target=receiver.server.serve_forever)
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def deployed(
    api_url: str,
    command_env: dict[str, str],
    hook: Hook,
    tmp_path_factory: pytest.TempPathFactory,
) -> Deployed:
    """Register everything on the shared server by the product's own command."""
    folder = tmp_path_factory.mktemp("deployed")
    env = {
        **command_env,
        "PREFECT_API_URL": api_url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "DO_NOT_TRACK": "1",
        "HOOK": hook.url,
    }
    done = subprocess.run(
        [COMMAND, "deploy", "--folder", folder, "--webhook-url-env", "HOOK"],
        cwd="/", env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "registered.txt").write_text(done.stdout)
    return Deployed(api_url, folder, env)


@pytest.fixture(scope="session")
def workers(deployed: Deployed) -> Iterator[Workers]:
    """Give a way to have a worker of the deployments; it ends with the tests."""
    started = Workers(deployed)
    yield started
    started.kill()
