"""Who may use the embedded environment, and who may spend the key of its model."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.observing import answering

Launch = Callable[..., httpx.Client]
ROW = EMBEDDED_TASKS.read_bytes().splitlines()[0]
JSON = {"Content-Type": "application/json"}


class Endpoint(BaseHTTPRequestHandler):
    """A model endpoint that notes the keys it is sent, and answers nothing."""

    keys: list[str | None] = []  # noqa: RUF012 - one test's

    def do_POST(self) -> None:
        self.keys.append(self.headers["Authorization"])
        self.send_response(503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def model_url() -> Iterator[str]:
    """Give the URL of such an endpoint."""
    Endpoint.keys.clear()
    with answering(Endpoint) as url:
        yield f"{url}/v1"


@pytest.fixture
def paid(launch: Launch, model_url: str) -> httpx.Client:
    """Give a client, which has the token, of an environment with a real model."""
    return launch("--model-url", model_url, "--model", "m")


def test_without_the_token_no_key_is_spent(paid: httpx.Client) -> None:
    for given in ({}, {"Authorization": "Bearer another"}):
        with httpx.Client(base_url=paid.base_url, trust_env=False) as stranger:
            refused = [
                stranger.post("/run", content=ROW, headers={**JSON, **given}),
                stranger.get("/global_config_dict_yaml", headers=given),
                stranger.post("/_knobs", json={"constant_reward": 1}, headers=given),
            ]
        assert [reply.status_code for reply in refused] == [401] * 3
    assert Endpoint.keys == []

    paid.post("/run", content=ROW, headers=JSON)
    assert len(Endpoint.keys) >= 1


def test_bytes_that_are_no_text_are_no_token(paid: httpx.Client) -> None:
    with httpx.Client(base_url=paid.base_url, trust_env=False) as stranger:
        reply = stranger.get("/", headers=[(b"Authorization", b"Bearer \xff\xfe")])

    assert reply.status_code == 401


def test_a_real_model_has_no_knobs(paid: httpx.Client) -> None:
    assert paid.get("/_knobs").status_code == 404
    assert paid.post("/_knobs", json={"constant_reward": 1}).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:{port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
    ],
)
def test_no_web_page_gets_in(
    demo: httpx.Client, headers: dict[str, str], status: int
) -> None:
    port = demo.base_url.port
    given = {
        name: value.replace("{port}", f"{port}") for name, value in headers.items()
    }

    reply = demo.post("/run", content=ROW, headers={**JSON, **given})

    assert reply.status_code == status


def test_a_model_without_a_token_is_refused() -> None:
    line = [sys.executable, "-m", "reward_profiling.demo", "--model-url", "http://h/v1"]
    env = {"PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(
        [*line, "--model", "m"], env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "needs the variable REWARD_PROFILING_DEMO_TOKEN" in done.stderr
