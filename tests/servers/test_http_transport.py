import asyncio
import gc
import gzip
import itertools
import re
import resource
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import aiohttp
import httpx
import pytest

from reward_profiling.servers.http_transport import (
    KEEPALIVE_SECONDS,
    AiohttpTransport,
    ReplyTooLargeError,
)
from reward_profiling.servers.http_transport import _as_httpx as fault_for

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BOUND = 1000
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serve(script: Script) -> AsyncIterator[str]:
    """Run a script for each connection, and give the URL."""
    running: set[asyncio.Task[None]] = set()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError), closing(writer):
            await script(reader, writer)
        running.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=2048)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """Read one request whole."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return head + (await reader.readexactly(int(length[1])) if length else b"")


def answers(*replies: bytes, stays: bool = False) -> Script:
    """Answer each request of a connection with the next reply, then close."""

    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for reply in replies:
            await request_of(reader)
            writer.write(reply)
            await writer.drain()
        if stays:
            await asyncio.Event().wait()

    return script


def noting(seen: list[bytes], reply: bytes) -> Script:
    """Note each request of a connection, and answer it."""

    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            seen.append(await request_of(reader))
            writer.write(reply)

    return script


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


@asynccontextmanager
async def client(**timeouts: float | None) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=AiohttpTransport(max_reply_bytes=BOUND),
        timeout=httpx.Timeout(None, **{"connect": 5.0, **timeouts}),
        trust_env=False,
    ) as http:
        yield http


async def outcome(url: str, **timeouts: float) -> httpx.Response | httpx.HTTPError:
    """Post once; give the reply or the fault."""
    async with client(**timeouts) as http:
        try:
            return await http.post(url, content=b"{}")
        except httpx.HTTPError as error:
            return error


async def fault_of(script: Script, **timeouts: float) -> httpx.HTTPError:
    async with serve(script) as url:
        fault = await outcome(url, **timeouts)
    assert isinstance(fault, httpx.HTTPError)
    return fault


def kind_of(fault: object) -> type:
    return type(fault)


# Never sent.


async def test_an_unused_port_was_never_sent_to() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"

        assert kind_of(await outcome(url)) is httpx.ConnectError


async def test_an_unknown_host_was_never_sent_to() -> None:
    assert kind_of(await outcome("http://no-such-host.invalid/")) is httpx.ConnectError


async def test_a_slow_connection_was_never_sent_to() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):  # both places are taken: a third has to wait
            waiting.settimeout(0)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"

        assert kind_of(await outcome(url, connect=0.2)) is httpx.ConnectTimeout


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/", "127.0.0.1:11000", "", "http:///run",
        "http://127.0.0.1:99999/", f"http://{'x' * 70}/", "http://a..b/",
    ],
)  # fmt: skip
async def test_an_unusable_address_is_its_own_fault(
    url: str,
) -> None:
    assert kind_of(await outcome(url)) is httpx.UnsupportedProtocol


# Sent, and perhaps carried out.


async def test_a_close_may_follow_the_work() -> None:
    async def script(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await request_of(reader)

    assert kind_of(await fault_of(script)) is httpx.RemoteProtocolError


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
async def test_a_reset_may_follow_the_work(sent: bytes) -> None:
    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await request_of(reader)
        writer.write(sent)
        await writer.drain()
        linger = struct.pack("ii", 1, 0)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    fault = await fault_of(script)

    assert isinstance(fault, httpx.ReadError | httpx.RemoteProtocolError)
    assert not isinstance(fault, ReplyTooLargeError)


async def test_a_reset_midway_is_no_connect_error() -> None:
    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readexactly(100)
        writer.transport.abort()

    async with serve(script) as url, client() as http:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await http.post(url, content=bytes(50_000_000))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        CHUNKED + b"4\r\nhalf\r\n",
        CHUNKED + b"a\r\nhalf",
    ],
)
async def test_a_cut_off_body_is_a_read_error(reply: bytes) -> None:
    assert kind_of(await fault_of(answers(reply))) is httpx.ReadError


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff\xfe garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 2OO OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    ],
)
async def test_what_is_not_http_may_be_an_answer(reply: bytes) -> None:
    fault = await fault_of(answers(reply))

    assert kind_of(fault) is httpx.RemoteProtocolError
    str(fault).encode()


async def test_a_sizeless_chunk_is_no_reply() -> None:
    fault = await fault_of(answers(CHUNKED + b"zz\r\nhalf\r\n0\r\n\r\n"))

    assert isinstance(fault, httpx.ReadError | httpx.RemoteProtocolError)


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
async def test_a_slow_reply_is_a_read_timeout(
    sent: bytes,
) -> None:
    script = answers(sent, stays=True)

    assert kind_of(await fault_of(script, read=0.1)) is httpx.ReadTimeout


async def test_a_server_that_never_reads_is_left() -> None:
    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async with serve(script) as url, client(connect=0.2, write=0.1, read=0.1) as http:
        async with asyncio.timeout(5):
            with pytest.raises(httpx.ReadTimeout):
                await http.post(url, content=bytes(50_000_000))


# Answered, but too long.


async def test_a_body_at_the_bound_is_taken() -> None:
    async with serve(answers(sized(bytes(BOUND)))) as url:
        reply = await outcome(url)

    assert isinstance(reply, httpx.Response)
    assert len(reply.content) == BOUND


@pytest.mark.parametrize(
    "reply",
    [
        sized(bytes(BOUND + 1)),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        CHUNKED + b"3e9\r\n" + bytes(1001) + b"\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n" + bytes(BOUND + 1),
    ],
)
async def test_a_body_over_the_bound_is_refused(reply: bytes) -> None:
    fault = await fault_of(answers(reply, stays=True))

    assert kind_of(fault) is ReplyTooLargeError
    assert str(BOUND) in str(fault)


# Replies.


async def reply_to(reply: bytes) -> httpx.Response:
    async with serve(answers(reply)) as url:
        taken = await outcome(url)
    assert isinstance(taken, httpx.Response), taken
    return taken


@pytest.mark.parametrize(
    "reply",
    [
        sized(b"whole"),
        CHUNKED + b"3\r\nwho\r\n2\r\nle\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nwhole",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole",
        sized(gzip.compress(b"whole", mtime=0), b"Content-Encoding: gzip"),
    ],
)
async def test_a_body_is_read_in_any_framing(reply: bytes) -> None:
    assert (await reply_to(reply)).content == b"whole"


async def test_a_false_gzip_is_a_decoding_error() -> None:
    fault = await fault_of(answers(sized(b"not gzip", b"Content-Encoding: gzip")))

    assert kind_of(fault) is httpx.DecodingError


async def test_an_odd_status_keeps_its_words() -> None:
    reply = await reply_to(b"HTTP/1.1 599 Sl\xf6w\r\nContent-Length: 0\r\n\r\n")

    assert reply.status_code == 599
    assert reply.reason_phrase.startswith("Sl")


async def test_headers_are_passed_on_unchanged() -> None:
    reply = await reply_to(sized(b"", b"Retry-After: 7", b"X-A: 1", b"X-A: 2"))

    assert reply.headers["retry-after"] == "7"
    assert reply.headers.get_list("x-a") == ["1", "2"]


async def test_a_redirect_is_not_followed() -> None:
    moved = b"HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"

    assert (await reply_to(moved)).status_code == 307


# Requests.


async def test_a_request_has_only_our_headers() -> None:
    seen: list[bytes] = []

    async with serve(noting(seen, OK)) as url, client() as http:
        headers = {"Content-Type": "application/json"}
        await http.post(url + "é?q=a b ü", content=b'{"a":1}', headers=headers)

    head, _, body = seen[0].partition(b"\r\n\r\n")
    line, *rest = head.decode("ascii").split("\r\n")
    assert line == "POST /%C3%A9?q=a%20b%20%C3%BC HTTP/1.1"
    assert sorted(one.partition(":")[0].lower() for one in rest) == [
        "accept", "accept-encoding", "connection", "content-length", "content-type",
        "host", "user-agent",
    ]  # fmt: skip
    assert (body, "Content-Type: application/json" in rest) == (b'{"a":1}', True)


async def test_cookies_are_never_sent_back() -> None:
    seen: list[bytes] = []
    reply = sized(b"", b"Set-Cookie: session=s; Path=/", b"Set-Cookie: other=o")

    async with serve(noting(seen, reply)) as url, client() as http:
        for _ in range(2):
            await http.post(url, content=b"{}")

        assert not http.cookies
    assert len(seen) == 2
    assert not any(b"cookie" in one.lower() for one in seen)


# Connections.


async def test_a_connection_is_used_again() -> None:
    connections = 0

    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        await answers(*[OK] * 5)(reader, writer)

    async with serve(script) as url, client() as http:
        for _ in range(5):
            await http.post(url, content=b"{}")

    assert connections == 1


async def test_a_closed_idle_connection_is_dropped() -> None:
    async with serve(answers(OK)) as url, client() as http:
        for _ in range(3):
            assert (await http.post(url, content=b"{}")).text == "ok"
            await asyncio.sleep(0.05)


async def test_closing_midway_is_no_connect_error() -> None:
    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await answers(OK)(reader, writer)
        await reader.read(1)  # the next request has begun

    async with serve(script) as url, client() as http:
        await http.post(url, content=b"{}")

        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await http.post(url, content=b"{}")


def test_we_drop_idle_connections_first() -> None:
    assert KEEPALIVE_SECONDS < 5


def answers_together(count: int) -> Script:
    """Answer nobody before so many requests have come."""
    num_here, all_here = itertools.count(1), asyncio.Event()

    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await request_of(reader)
        if next(num_here) == count:
            all_here.set()
        await all_here.wait()
        writer.write(OK)
        await writer.drain()

    return script


async def test_a_thousand_requests_run_at_once() -> None:
    script = answers_together(1000)

    async with serve(script) as url, client() as http, asyncio.timeout(20):
        posts = (http.post(url, content=b"{}") for _ in range(1000))
        replies = await asyncio.gather(*posts)

    assert {reply.text for reply in replies} == {"ok"}


def test_the_first_request_lifts_a_low_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        once(AiohttpTransport(), closes=True)

        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def answers_in_part(sent: bytes, asked: asyncio.Event, closed: asyncio.Event) -> Script:
    """Begin to answer, and tell when the other side has closed."""

    async def script(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await request_of(reader)
        writer.write(sent)
        asked.set()
        assert await reader.read() == b""
        closed.set()

    return script


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
async def test_cancelling_closes_the_connection(sent: bytes) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()
    script = answers_in_part(sent, asked, closed)

    async with serve(script) as url, client() as http, asyncio.timeout(5):
        posting = asyncio.create_task(http.post(url, content=b"{}"))
        await asked.wait()
        await asyncio.sleep(0.02)
        posting.cancel()
        await asyncio.wait([posting])

        assert posting.cancelled()
        await closed.wait()


def once(transport: AiohttpTransport, *, closes: bool) -> str:
    async def ask() -> str:
        async with serve(answers(OK)) as url:
            http = httpx.AsyncClient(transport=transport, trust_env=False)
            text = (await http.get(url)).text
            if closes:
                await http.aclose()
            return text

    return asyncio.run(ask())


@pytest.mark.parametrize("closes", [True, False])
def test_one_transport_serves_two_loops(closes: bool) -> None:  # noqa: FBT001
    transport = AiohttpTransport()

    assert once(transport, closes=closes) == "ok"
    assert once(transport, closes=True) == "ok"
    del transport
    gc.collect()


async def test_closing_twice_is_fine() -> None:
    async with AiohttpTransport() as transport:
        await transport.aclose()


# Every fault of aiohttp's comes out as one of httpx's.


def leaves(base: type[Any]) -> list[type[Any]]:
    return [base, *(leaf for sub in base.__subclasses__() for leaf in leaves(sub))]


@pytest.mark.parametrize("kind", leaves(aiohttp.ClientError), ids=lambda k: k.__name__)
def test_every_aiohttp_error_is_mapped(kind: type[Exception]) -> None:
    named: Any = type(kind.__name__, (kind,), {"__str__": lambda _: "not text: \udcff"})

    fault = fault_for(named.__new__(named), httpx.Request("GET", "http://h/"))

    assert isinstance(fault, httpx.TransportError)
    assert str(fault) == f"{kind.__name__}: not text: ?"


@pytest.mark.parametrize("kind", [OSError, ConnectionResetError, BrokenPipeError])
def test_a_system_error_may_follow_the_work(
    kind: type[Exception],
) -> None:
    fault = fault_for(kind("x"), httpx.Request("GET", "http://h/"))

    assert kind_of(fault) is httpx.ReadError


async def test_a_decompressed_body_is_bounded() -> None:
    bomb = gzip.compress(bytes(100 * BOUND))

    fault = await fault_of(answers(sized(bomb, b"Content-Encoding: gzip")))

    assert len(bomb) < BOUND
    assert kind_of(fault) is ReplyTooLargeError
