import asyncio
import json
import pickle
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import (
    ContextLengthError,
    GymError,
    GymRejectedError,
    GymUnavailableError,
    ReplyLostError,
    ServersNotReadyError,
)
from reward_profiling.servers.gym_client import GymClient, gym_client
from reward_profiling.servers.gym_client import _configuration as configuration_in

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
CONFIG = {"math_agent": {"responses_api_agents": {"a": {"port": 1}}}}
NOBODY = "http://127.0.0.1:1"
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    """Answer every request so, and give the URL."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def always(status: int = 200, body: bytes = b"", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers=named)

    return answer


@asynccontextmanager
async def asking(
    status: int = 200, body: bytes = b"", **headers: str
) -> AsyncIterator[tuple[GymClient, str]]:
    async with serve(always(status, body, **headers)) as url, gym_client() as client:
        yield client, url


async def error_of(status: int, body: bytes = b"", **headers: str) -> GymError:
    async with asking(status, body, **headers) as (client, url):
        with pytest.raises(GymError) as caught:
            await client.run_rollout(url, b"{}")
    return caught.value


# The head server's configuration.


def as_yaml_in_json(text: str) -> bytes:
    return orjson.dumps(text)


@pytest.mark.parametrize(
    "body",
    [
        orjson.dumps(CONFIG),
        as_yaml_in_json("math_agent: {responses_api_agents: {a: {port: 1}}}"),
        as_yaml_in_json(
            "math_agent:\n  responses_api_agents:\n    a:\n      port: 1\n"
        ),
    ],
)
async def test_a_configuration_is_text_or_an_object(
    body: bytes,
) -> None:
    async with asking(body=body) as (client, url):
        assert await client.configuration(url) == CONFIG


async def test_interpolations_stay_unresolved() -> None:
    body = as_yaml_in_json("a: ${policy_api_key}\nb: '${x.y}'\nc: ???\n")

    async with asking(body=body) as (client, url):
        config = await client.configuration(url)

    assert config == {"a": "${policy_api_key}", "b": "${x.y}", "c": "???"}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>sk-secret</html>",
        b'{"policy_api_key": "sk-secret"',
        as_yaml_in_json("policy_api_key: sk-secret: {"),
        as_yaml_in_json("policy_api_key: !!python/name:os.sk-secret"),
        as_yaml_in_json("policy_api_key: sk-secret\ndate: 2026-13-45"),
        as_yaml_in_json("sk-secret"),
        orjson.dumps(["sk-secret"]),
        as_yaml_in_json("[" * 20_000 + "sk-secret"),
        b"null",
        b"",
    ],
)
async def test_a_bad_configuration_is_not_quoted(
    body: bytes,
) -> None:
    async with asking(body=body) as (client, url):
        with pytest.raises(ServersNotReadyError, match="NeMo Gym's head server") as it:
            await client.configuration(url)

    assert url in str(it.value)
    assert "secret" not in repr((it.value, it.value.__cause__, it.value.__context__))


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.binary())
def test_no_text_breaks_configurations(text: str | bytes) -> None:
    configuration_in(text if isinstance(text, bytes) else orjson.dumps(text))


async def test_an_absent_server_is_unavailable() -> None:
    async with gym_client() as client:
        with pytest.raises(GymUnavailableError, match=":1/global_config_dict_yaml"):
            await client.configuration(NOBODY)


# Readiness.


@pytest.mark.parametrize(
    ("status", "ready"), [(200, True), (404, True), (503, False), (500, False)]
)
async def test_the_probes_status_is_readiness(
    status: int,
    ready: bool,  # noqa: FBT001
) -> None:
    async with asking(status) as (client, url):
        assert await client.is_ready(url) == ready


@pytest.mark.parametrize("status", [301, 401, 403, 418])
async def test_what_is_no_head_server_is_asked_once(status: int) -> None:
    async with asking(status) as (client, url):
        with pytest.raises(GymRejectedError, match=f"answered {status}"):
            await client.is_ready(url)


async def test_a_refused_probe_sends_nothing() -> None:
    async with gym_client() as client:
        with pytest.raises(GymUnavailableError) as caught:
            await client.is_ready(NOBODY)

    assert not isinstance(caught.value, ReplyLostError)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:11000", "ftp://h", "http://h:None", "http://[::1", "http://a..b"]
)
async def test_an_unusable_url_is_rejected(url: str) -> None:
    async with gym_client() as client:
        with pytest.raises(GymRejectedError):
            await client.is_ready(url)


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_any_answer_is_a_sign_of_life(status: int) -> None:
    async with asking(status) as (client, url):
        await client.probe(url)


async def test_a_slow_probe_is_unavailable() -> None:
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with serve(never) as url, gym_client() as client:
        with pytest.raises(GymUnavailableError, match="gave no complete answer"):
            await client.probe(url, 0.1)


async def test_a_refused_life_sign_is_unavailable() -> None:
    async with gym_client() as client:
        with pytest.raises(GymUnavailableError):
            await client.probe(NOBODY)


# Rollouts.


async def test_rollouts_and_replies_pass_unchanged() -> None:
    async def echo(request: web.Request) -> web.Response:
        kind = request.headers["Content-Type"]
        sent = f"{request.method} {request.path} {kind} ".encode()
        return web.Response(body=sent + await request.read())

    row = b'{ "a" : 1.50 }'
    async with serve(echo) as url, gym_client() as client:
        reply = await client.run_rollout(url, row)

    assert reply == b"POST /run application/json " + row


async def test_a_row_of_many_megabytes_is_posted() -> None:
    async def length(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    async with serve(length) as url, gym_client() as client:
        reply = await client.run_rollout(url, bytes(5_000_000))

    assert reply == b"5000000"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_what_may_pass_is_unavailable(status: int) -> None:
    error = await error_of(status, b'"busy"')

    assert type(error) is GymUnavailableError
    assert (error.status, error.body, error.kind) == (
        status, '"busy"', "HTTPStatusError",
    )  # fmt: skip


@pytest.mark.parametrize("status", [201 + 101, 307, 400, 401, 404, 413, 422])
async def test_what_will_not_change_is_rejected(status: int) -> None:
    error = await error_of(status, b'{"detail":"no"}')

    assert type(error) is GymRejectedError
    assert error.status == status
    assert str(error).endswith(": no")
    assert error.body == '{"detail":"no"}'


@pytest.mark.parametrize("body", [b"", b"  \n"])
async def test_a_bodiless_error_says_something(body: bytes) -> None:
    error = await error_of(500, body)

    assert str(error).endswith("answered 500 Internal Server Error, with an empty body")


async def test_a_wordless_status_is_said_plainly() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=599, reason="", text="x")

    async with serve(answer) as url, gym_client() as client:
        with pytest.raises(GymUnavailableError, match="answered 599: x"):
            await client.run_rollout(url, b"{}")


async def test_a_reason_phrase_is_no_way_out_for_a_key() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=500, reason="wrong key sk-abc123456789", text="x")

    async with serve(answer) as url, gym_client() as client:
        with pytest.raises(GymUnavailableError) as caught:
            await client.run_rollout(url, b"{}")

    assert str(caught.value).endswith("answered 500 wrong key [redacted]: x")


@pytest.mark.parametrize(
    ("status", "is_it"), [(400, True), (500, True), (429, False), (200, False)]
)
async def test_a_request_that_is_too_long_is_told_apart(
    status: int,
    is_it: bool,  # noqa: FBT001
) -> None:
    body = b'"This model\'s maximum context length is 8192 tokens."'
    if status == 200:
        async with asking(status, body) as (client, url):
            assert await client.run_rollout(url, b"{}") == body
        return
    error = await error_of(status, body)

    assert isinstance(error, ContextLengthError) == is_it
    assert error.status == status


async def test_a_huge_error_costs_little() -> None:
    started = time.process_time()

    error = await error_of(500, b"sk-" * 10_000_000)

    assert time.process_time() - started < 1
    assert len(error.body or "") < 50_000


async def test_an_error_says_what_came_first() -> None:
    body = json.dumps({"error": {"message": "the key sk-abc123456789 is wrong"}})
    for server in ("Model___policy", "Agent___math_agent"):
        said = (
            f"Hit an exception in {server} calling an inner server: {body.encode()!r}"
        )
        body = json.dumps(said)

    error = await error_of(500, body.encode())

    assert str(error).endswith(
        "answered 500 Internal Server Error: the key [redacted] is wrong, passed on by"
        " policy"
    )
    assert error.body is not None
    assert error.body.startswith('"Hit an exception in Agent___math_agent calling')


async def test_a_long_body_is_cut_only_in_messages() -> None:
    error = await error_of(500, b"x" * 5000)

    assert len(str(error)) < 400
    assert error.body == "x" * 5000


@pytest.mark.parametrize("charset", ["base64", "no-such-charset", "utf-16", "rot13"])
async def test_a_body_is_shown_in_any_charset(charset: str) -> None:
    error = await error_of(
        500, b"caf\xc3\xa9\xff", content_type=f"text/plain; charset={charset}"
    )

    assert error.body == "café\N{REPLACEMENT CHARACTER}"


async def test_retry_after_is_read_in_seconds() -> None:
    assert (await error_of(429, retry_after="7")).retry_after_seconds == 7.0


async def test_retry_after_is_read_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)

    seconds = (await error_of(503, retry_after=date)).retry_after_seconds

    assert seconds == pytest.approx(58, abs=3)


async def test_retry_after_may_be_nonsense() -> None:
    assert (await error_of(503)).retry_after_seconds is None
    assert (await error_of(503, retry_after="soon")).retry_after_seconds is None


async def test_errors_cross_processes_whole() -> None:
    error = await error_of(429, b"busy", retry_after="7")

    copy = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


async def test_a_reply_that_is_cut_off_is_lost() -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "100"})
        await reply.prepare(request)
        await reply.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return reply

    async with serve(half) as url, gym_client() as client:
        with pytest.raises(ReplyLostError, match="ReadError") as caught:
            await client.run_rollout(url, b"{}")

    assert caught.value.status is None


async def test_an_undecodable_reply_is_rejected() -> None:
    error = await error_of(200, b"not gzip", content_encoding="gzip")

    assert type(error) is GymRejectedError
    assert (error.kind, error.status) == ("DecodingError", 200)


# Aggregation.


async def test_records_are_sent_and_answered() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"got": await request.json()})

    async with serve(answer) as url, gym_client() as client:
        reply = await client.aggregate_metrics(url, [{"reward": 1.0}])

    assert reply == {"got": {"verify_responses": [{"reward": 1.0}]}}


@pytest.mark.parametrize("body", [b"", b"NaN", b"<html>", b"null", b"[]", b'"x"'])
async def test_an_answer_must_be_an_object(body: bytes) -> None:
    async with asking(body=body) as (client, url):
        with pytest.raises(GymRejectedError, match="the answer is"):
            await client.aggregate_metrics(url, [])
