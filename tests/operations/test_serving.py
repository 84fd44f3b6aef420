import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from aiohttp import web

from tasks.core.errors import ServersNotReadyError
from tasks.core.models import ServerOptions
from tasks.operations.serving import serving, wait_until_ready

CONFIG = {"math_agent": {"responses_api_agents": {"a": {"port": 1}}}}
pytestmark = pytest.mark.anyio

# Serves a head on the port it is given, as `gym env start` does: starting at first,
# then ready, with a server of its own in the background, and gone at an interrupt.
FAKE_GYM = """#!{python}
import http.server, json, os, pathlib, signal, subprocess, sys
folder = pathlib.Path({folder!r})
(folder / "arguments").write_text(json.dumps(sys.argv[1:]))
child = subprocess.Popen(["sleep", "60"])
(folder / "pids").write_text(f"{{os.getpid()}} {{child.pid}}")
print("gym is starting", flush=True)
{before}
num_probes = 0
class Head(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global num_probes
        num_probes += self.path == "/readyz"
        is_starting = self.path == "/readyz" and num_probes < 3
        body = json.dumps({config!r}).encode()
        self.send_response(503 if is_starting else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
(port,) = [int(one[19:]) for one in sys.argv if one.startswith("++head_server.port=")]
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Head)
try:
    server.serve_forever()
except KeyboardInterrupt:
    print("gym was interrupted", flush=True)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "servers.log"


@pytest.fixture
def gym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Give a way to put a fake gym on PATH, which does something before it serves."""

    def make(before: str = "") -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        script = FAKE_GYM.format(
            python=sys.executable, folder=str(tmp_path), config=CONFIG, before=before
        )
        (folder / "fake-gym").write_text(script)
        (folder / "fake-gym").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return "fake-gym"

    return make


@asynccontextmanager
async def head(*statuses: int, config: object = CONFIG) -> AsyncIterator[str]:
    """Run a head server whose probe answers so, the last status for ever."""
    left = list(statuses)

    async def ready(_: web.Request) -> web.Response:
        return web.Response(status=left.pop(0) if len(left) > 1 else left[0])

    async def configuration(_: web.Request) -> web.Response:
        return web.Response(body=orjson.dumps(config))

    app = web.Application()
    app.router.add_get("/readyz", ready)
    app.router.add_get("/global_config_dict_yaml", configuration)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def running_of(tmp_path: Path) -> list[bool]:
    pids = (tmp_path / "pids").read_text().split()
    return [is_running(int(pid)) for pid in pids]


def arguments_in(tmp_path: Path) -> object:
    return orjson.loads((tmp_path / "arguments").read_bytes())


def text(log: Path) -> str:
    return log.read_text() if log.exists() else ""


async def refusal_of(url: str, seconds: float = 10.0, absent: float = 0.1) -> str:
    with pytest.raises(ServersNotReadyError) as caught:
        await wait_until_ready(url, seconds, absent_seconds=absent)
    return str(caught.value)


# Servers that are found.


async def test_found_servers_are_neither_asked_nor_stopped(log: Path) -> None:
    async with head(503, 200) as url:
        async with serving(ServerOptions(head_url=url + "/"), log) as given:
            assert given == url

        probe = await asyncio.to_thread(httpx.get, f"{url}/readyz", trust_env=False)
        assert probe.status_code == 503  # the first probe that it got
    assert text(log) == ""


async def test_servers_are_waited_for_until_they_are_ready() -> None:
    async with head(503, 503, 200) as url:
        servers = await wait_until_ready(url, 10.0)

    assert servers.agents == ["math_agent"]


async def test_a_head_server_without_a_probe_is_taken_as_ready() -> None:
    async with head(404) as url:
        assert (await wait_until_ready(url, 10.0)).agents == ["math_agent"]


async def test_where_nothing_listens_the_wait_is_short_and_says_so() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        asked = time.monotonic()

        said = await refusal_of(url, 600.0)

    assert time.monotonic() - asked < 3
    assert said.startswith(f"the head server {url} was not ready within 0.1 s")
    assert "ConnectError" in said


async def test_servers_that_stay_starting_are_given_up_in_time() -> None:
    async with head(503) as url:
        said = await refusal_of(url, 0.2)

    assert said.endswith("not ready within 0.2 s: its servers are still starting")


@pytest.mark.parametrize("url", ["127.0.0.1:11000", "ftp://127.0.0.1", "http://h:None"])
async def test_a_url_that_cannot_be_asked_is_refused_at_once(url: str) -> None:
    asked = time.monotonic()

    said = await refusal_of(url, 600.0, absent=60.0)

    assert said.startswith(f"no head server of NeMo Gym is at {url}")
    assert time.monotonic() - asked < 3


async def test_something_else_that_listens_there_is_refused_at_once() -> None:
    async with head(403) as url:
        assert "answered 403 Forbidden" in await refusal_of(url, 600.0, absent=60.0)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("a: [", "is this the head server of NeMo Gym?"),
        ({}, "names no agent"),
        ({"policy_model": {"responses_api_models": {"m": {}}}}, "names no agent"),
    ],
)
async def test_a_head_server_without_agents_is_of_no_use(
    config: object, words: str
) -> None:
    async with head(200, config=config) as url:
        assert words in await refusal_of(url)


async def test_a_long_wait_is_told_once() -> None:
    said: list[str] = []

    async with head(503, 503, 503, 200) as url:
        await wait_until_ready(url, 10.0, said.append, tell_seconds=0.01)

    assert said == [f"waiting for {url}: its servers are still starting"]


# The embedded environment.


async def test_the_environment_is_ready_at_once_and_gone_after(log: Path) -> None:
    async with serving(ServerOptions(demo=True), log) as url:
        assert is_up(url)
        servers = await wait_until_ready(url, 1.0)
        assert "number_match_agent" in servers.agents

    assert not is_up(url)


async def test_the_environment_is_given_the_model(log: Path) -> None:
    options = ServerOptions(demo=True, model_url="no-url", model="m")

    with pytest.raises(ServersNotReadyError, match="--model-url must start with http"):
        async with serving(options, log):
            pass


# Gym.


async def test_gym_is_started_with_its_flags_and_waited_for(
    gym: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    options = ServerOptions(
        gym_config=("a.yaml", "b.yaml"), gym_command=gym(),
        model_url="http://127.0.0.1:8000/v1", model="llama", gym_overrides=("+a=1",),
    )  # fmt: skip

    async with serving(options, log) as url:
        assert is_up(url)

    assert arguments_in(tmp_path) == [
        "env", "start", "--config", "a.yaml", "--config", "b.yaml",
        "--model-url", "http://127.0.0.1:8000/v1", "--model", "llama",
        f"++head_server.port={url.rpartition(':')[2]}", "+a=1",
    ]  # fmt: skip


async def test_gym_is_interrupted_at_the_end_and_nothing_of_it_is_left(
    gym: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())

    async with serving(options, log) as url:
        assert running_of(tmp_path) == [True, True]

    assert not is_up(url)
    assert running_of(tmp_path) == [False, False]
    assert text(log) == "gym is starting\ngym was interrupted\n"


async def test_a_gym_that_ends_shows_the_end_of_its_log(
    gym: Callable[..., str], log: Path
) -> None:
    command = gym("print('no such config'); sys.exit(1)")
    options = ServerOptions(gym_config=("a.yaml",), gym_command=command)

    with pytest.raises(ServersNotReadyError) as caught:
        async with serving(options, log):
            pass

    assert str(caught.value) == (
        f"`fake-gym env start` ended with exit code 1; the end of {log}:\n"
        "gym is starting\nno such config"
    )


async def test_a_gym_that_is_not_there_is_named(log: Path) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command="no-such-gym")

    with pytest.raises(ServersNotReadyError, match="no-such-gym cannot be run"):
        async with serving(options, log):
            pass


async def test_a_gym_that_never_comes_up_is_stopped_and_shows_its_log(
    gym: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    options = ServerOptions(
        gym_config=("a.yaml",), gym_command=gym("signal.pause()"), start_timeout=0.5
    )

    with pytest.raises(
        ServersNotReadyError, match=r"not ready within 0\.5 s"
    ) as caught:
        async with serving(options, log):
            pass

    assert "gym is starting" in str(caught.value)
    assert running_of(tmp_path) == [False, False]


async def test_gym_is_gone_after_an_exception_of_ours(
    gym: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())

    with pytest.raises(RuntimeError, match="ours"):
        async with serving(options, log):
            raise RuntimeError("ours")

    assert running_of(tmp_path) == [False, False]
