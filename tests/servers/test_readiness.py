import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest
from aiohttp import web

from reward_profiling.errors import ServersNotReadyError
from reward_profiling.servers.readiness import ReadyWait, wait_until_ready
from reward_profiling.servers.server_states import Changes, ServerState

CONFIG = {"math_agent": {"responses_api_agents": {"a": {"port": 1}}}}
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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


async def refusal_of(url: str, seconds: float = 10.0, absent: float = 0.1) -> str:
    with pytest.raises(ServersNotReadyError) as caught:
        await wait_until_ready(url, seconds, absent_seconds=absent)
    return str(caught.value)


async def test_servers_are_awaited_until_ready() -> None:
    async with head(503, 503, 200) as url:
        servers = await wait_until_ready(url, 10.0)

    assert servers.agents == ["math_agent"]


async def test_a_server_without_a_probe_is_ready() -> None:
    async with head(404) as url:
        assert (await wait_until_ready(url, 10.0)).agents == ["math_agent"]


async def test_a_wait_for_nothing_is_short() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        asked = time.monotonic()

        said = await refusal_of(url, 600.0)

    assert time.monotonic() - asked < 3
    assert said.startswith(f"the head server {url} was not ready within 0.1 s")
    assert "ConnectError" in said


async def test_servers_stuck_starting_are_given_up() -> None:
    async with head(503) as url:
        said = await refusal_of(url, 0.2)

    assert said.endswith("not ready within 0.2 s: its servers are still starting")


@pytest.mark.parametrize("url", ["127.0.0.1:11000", "ftp://127.0.0.1", "http://h:None"])
async def test_an_unusable_url_is_refused_at_once(url: str) -> None:
    asked = time.monotonic()

    said = await refusal_of(url, 600.0, absent=60.0)

    assert said.startswith(f"no head server of NeMo Gym is at {url}")
    assert time.monotonic() - asked < 3


async def test_another_listener_is_refused_at_once() -> None:
    async with head(403) as url:
        assert "answered 403 Forbidden" in await refusal_of(url, 600.0, absent=60.0)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("a: [", "give the address of NeMo Gym's head server"),
        ({}, "has no agent"),
        ({"policy_model": {"responses_api_models": {"m": {}}}}, "has no agent"),
    ],
)
async def test_a_head_server_needs_agents(config: object, words: str) -> None:
    async with head(200, config=config) as url:
        assert words in await refusal_of(url)


async def test_a_long_wait_is_told_once() -> None:
    said: list[str] = []

    async with head(503, 503, 503, 200) as url:
        waiting = ReadyWait(url, 10.0, say=said.append, tell=0.01)
        assert await waiting.until_ready() is None

    assert said == [f"waiting for {url}: its servers are still starting"]


# What is seen while they start.


@asynccontextmanager
async def starting(ready: Sequence[int], healthy: Sequence[int]) -> AsyncIterator[str]:
    """Run a head server, and a server `math` of its own, whose probes answer so."""
    left = {"/readyz": list(ready), "/health": list(healthy)}

    async def probe(request: web.Request) -> web.Response:
        statuses = left[request.path]
        return web.Response(status=statuses.pop(0) if statuses[1:] else statuses[0])

    async def instances(request: web.Request) -> web.Response:
        url = str(request.url.origin())
        return web.json_response([{"process_name": "math", "url": url}])

    app = web.Application()
    app.router.add_get("/readyz", probe)
    app.router.add_get("/health", probe)
    app.router.add_get("/server_instances", instances)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_each_state_change_is_seen() -> None:
    changes = Changes()
    seen: list[tuple[str, str]] = []

    def observe(states: Sequence[ServerState]) -> None:
        seen.extend((s.name, s.state) for s in changes.of(states))

    async with starting([503, 503, 503, 200], [503, 200]) as url:
        assert await ReadyWait(url, 10.0, observe).until_ready() is None

    assert seen == [
        ("math", "starting"),
        ("head server", "waiting for its servers"),
        ("math", "ready"),
        ("head server", "waiting for the model endpoints"),
        ("head server", "ready"),
    ]


async def test_servers_already_up_are_not_listed() -> None:
    seen: list[Sequence[ServerState]] = []

    async with starting([200], [200]) as url:
        assert await ReadyWait(url, 10.0, seen.append).until_ready() is None

    assert seen == []


async def test_a_server_never_healthy_is_named() -> None:
    async with starting([503], [503]) as url:
        waiting = ReadyWait(url, 0.2)
        said = await waiting.until_ready()

    assert str(said).endswith("not ready within 0.2 s: still starting: math")
    assert waiting.late == ["math"]


def test_a_state_is_a_line() -> None:
    assert ServerState("math", "ready", 14.4).line == "math: ready after 14 s"
    assert ServerState("math", "starting", 3.0).line == "math: starting (3 s)"
