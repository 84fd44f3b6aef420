import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from tests.dag.living import Deployed, Hook, PrefectServer, Workers
from tests.observing import HTTP


@contextlib.contextmanager
def _prefect_server(home: Path) -> Iterator[tuple[str, int]]:
    """Run a Prefect server with a database of its own; give its API and its pid."""
    server = PrefectServer(home)
    try:
        yield server.api, server.start()
    finally:
        server.kill()


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
        reply = HTTP.post(f"{api_url}/{what}/filter", json=wanted)
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
    env = {**command_env, "HOOK": hook.url}
    return Deployed.on(api_url, folder, env, "--webhook-url-env", "HOOK")


@pytest.fixture(scope="session")
def workers(deployed: Deployed) -> Iterator[Workers]:
    """Give a way to have a worker of the deployments; it ends with the tests."""
    started = Workers(deployed)
    yield started
    started.kill()
