"""What servers say is shown on Prefect's pages as text: nothing in it is fetched."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from subprocess import CompletedProcess
from typing import NamedTuple

import httpx
import orjson
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import BROWSER, browse
from tests.observing import HTTP, answering, turn

Found = Callable[..., list[dict[str, object]]]
Run = Callable[..., CompletedProcess[str]]


class Pixel(NamedTuple):
    """A host that notes who fetches something from it."""

    url: str
    fetched: list[str]


@pytest.fixture
def pixel() -> Iterator[Pixel]:
    """Give such a host."""
    fetched: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fetched.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with answering(Answering) as url:
        yield Pixel(url, fetched)


class Hostile(NamedTuple):
    """A run of which a server has said something hostile."""

    done: CompletedProcess[str]
    image: str


@pytest.fixture
def hostile(api_url: str, servers: httpx.Client, command: Run, pixel: Pixel) -> Hostile:
    """Give such a run, which has ended."""
    image = f"![x]({pixel.url}/said.png) <img src={pixel.url}/tag.png>"
    said = f"# Big\n{image}\n[all is well]({pixel.url}/link) \x1b[2J {pixel.url}/bare"
    turn(
        servers, fail_status=500, fail_match="capital of Australia",
        fail_body=orjson.dumps({"detail": said}).decode(),
    )  # fmt: skip
    done = command(
        "run", "--input", EMBEDDED_TASKS, "--output", "hostile/r.jsonl",
        "--head-url", str(servers.base_url), "--retries", "0", PREFECT_API_URL=api_url,
    )  # fmt: skip
    return Hostile(done, image)


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: no page drawn")
def test_no_page_fetches_what_a_server_names(
    api_url: str, hostile: Hostile, found: Found, pixel: Pixel
) -> None:
    done = hostile.done
    assert done.returncode == 3, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b[2J" in done.stderr
    (run,) = found("flow_runs", {"flow_runs": {"name": {"like_": "hostile/r.jsonl"}}})
    of_run = {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}}
    shown = found("artifacts", of_run)
    assert {"markdown", "table", "progress"} <= {str(one["type"]) for one in shown}
    server = api_url.removesuffix("/api")
    pages = [f"{server}/runs/flow-run/{run['id']}"]
    pages += [f"{server}/artifacts/artifact/{one['id']}" for one in shown]
    drawn = [browse(page, "--dump-dom") for page in pages]
    assert any(f"{pixel.url}/said.png" in page for page in drawn), "it is shown"
    # The run's own page makes a link of every address in a log, and shows it whole.
    assert not any(f'href="{pixel.url}' in page for page in drawn[1:])
    assert pixel.fetched == []

    # The same words as they came: so the pages would have fetched it.
    raw = {"key": "as-it-came", "type": "markdown", "data": hostile.image}
    made = HTTP.post(f"{api_url}/artifacts/", json=raw).raise_for_status().json()
    browse(f"{server}/artifacts/artifact/{made['id']}", "--dump-dom")
    assert "/said.png" in pixel.fetched
