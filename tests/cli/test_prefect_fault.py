"""What is said when Prefect's server does not let us in."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from subprocess import CompletedProcess

import pytest

from tests.observing import answering

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def locked_server() -> Iterator[str]:
    """Give the API of a server that wants a login."""

    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_open = self.path.endswith("/health")
            self.send_response(200 if is_open else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with answering(Locked) as url:
        yield f"{url}/api"


@pytest.mark.parametrize("line", [["demo"], ["deploy"]])
def test_a_login_that_is_missing_is_named(
    command: Run, locked_server: str, line: list[str]
) -> None:
    done = command(*line, PREFECT_API_URL=locked_server)

    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "refuses this client (401)" in said
    assert "PREFECT_API_AUTH_STRING" in said
    assert "Traceback" not in said
