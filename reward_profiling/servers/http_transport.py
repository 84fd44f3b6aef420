"""The httpx API over aiohttp's sockets.

httpx's own pool walks all connections for every request, so that its cost grows with
the square of what is in flight; here a connection is found in constant time. Nothing
queues in the pool: how many requests are in flight is the caller's decision. Three
kinds of fault stay apart, since they decide whether a request may be sent again:

- never sent: `httpx.ConnectError`, `httpx.ConnectTimeout`, or, for an address that
  nothing can be sent to, `httpx.UnsupportedProtocol`;
- sent, and perhaps carried out: `httpx.ReadError`, `httpx.ReadTimeout`,
  `httpx.RemoteProtocolError`, `httpx.WriteError`;
- answered, but longer than the bound: `ReplyTooLargeError`.

No reply's cookies reach the client, so that every request stands alone.
"""

import asyncio
import io
import resource
from contextlib import suppress
from types import TracebackType
from typing import Self

import aiohttp
import httpx

from reward_profiling.servers.content_codings import (
    CodingError,
    TooLongError,
    decoded,
)

KEEPALIVE_SECONDS = 4.0
"""Below uvicorn's 5 s: if the server closes first, a request may hit a dead socket."""

MAX_REPLY_BYTES = 256 * 1024 * 1024
_CHUNK_BYTES = 1 << 18
_OPEN_FILES = 1 << 17
_NOT_PASSED = {b"set-cookie", b"set-cookie2", b"content-encoding"}
"""Headers that stay here; codings are undone, and httpx would undo them once more."""
_SINGLE = {b"content-length", b"transfer-encoding", b"host"}


class ReplyTooLargeError(httpx.ReadError):
    """The reply's body passes the bound; asking again would not help."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends httpx requests through one aiohttp session; closed with its client."""

    def __init__(self, *, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._max_reply_bytes = max_reply_bytes
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def _opened(self) -> aiohttp.ClientSession:
        # Made at the first request, since a session belongs to the running loop.
        if self._loop is not asyncio.get_running_loop():
            await self._forget_ended_loop()
        if self._session is None:
            _allow_many_sockets()
            self._loop = asyncio.get_running_loop()
            self._session = aiohttp.ClientSession(
                # No limit: a queue in the pool would count against the timeouts.
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEEPALIVE_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Decompressed below, within a bound that aiohttp does not have.
                auto_decompress=False,
                # A proxy of the environment cannot reach servers on this machine.
                trust_env=False,
            )
        return self._session

    async def _forget_ended_loop(self) -> None:
        # Sockets of a closed loop are unusable, and so is a session that holds them.
        left, self._session = self._session, None
        if left is not None:
            with suppress(RuntimeError):  # its loop is closed
                await left.close()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its reply whole.

        Raises:
            httpx.TransportError: by kind, as the module says.
        """
        content = await request.aread()
        headers = [
            (name.decode("ascii"), value.decode("latin-1"))
            for name, value in request.headers.raw
            if name.lower() not in _SINGLE  # aiohttp sets these itself
        ]
        try:
            session = await self._opened()
            async with asyncio.timeout(_seconds_to_headers(request)):
                reply = await session.request(
                    request.method,
                    str(request.url),
                    data=_body(content),
                    headers=headers,
                    # A redirected POST may become a GET: the caller sees the 3xx.
                    allow_redirects=False,
                    timeout=_timeout(request),
                    skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                )
            async with reply:
                body = self._decoded(await self._read(reply), reply, request)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _as_httpx(error, request) from error
        return httpx.Response(
            reply.status,
            headers=[
                (name, value)
                for name, value in reply.raw_headers
                if name.lower() not in _NOT_PASSED
            ],
            content=body,
            extensions={"reason_phrase": _ascii(reply.reason)},
        )

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        bound = self._max_reply_bytes
        announced = reply.content_length
        # Refuse before reading; the count below is for replies without a length.
        if announced is not None and announced > bound:
            reply.close()
            raise ReplyTooLargeError(f"the reply has {announced} bytes, over {bound}")
        chunks: list[bytes] = []
        size = 0
        async for chunk in reply.content.iter_chunked(_CHUNK_BYTES):
            size += len(chunk)
            if size > bound:
                reply.close()
                raise ReplyTooLargeError(f"the reply has over {bound} bytes")
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _decoded(
        self, body: bytes, reply: aiohttp.ClientResponse, request: httpx.Request
    ) -> bytes:
        """Undo the reply's codings within the bound."""
        try:
            found = reply.headers.getall("Content-Encoding", [])
            return decoded(body, found, self._max_reply_bytes)
        except CodingError as error:
            raise httpx.DecodingError(str(error), request=request) from error
        except TooLongError as error:
            raise ReplyTooLargeError(str(error), request=request) from error

    async def aclose(self) -> None:
        """Close the session and its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        """Return itself; the session opens at the first request."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close."""
        await self.aclose()


def _body(content: bytes) -> bytes | io.BytesIO | None:
    # aiohttp sends a large `bytes` in one blocking write, but a file in pieces.
    return io.BytesIO(content) if len(content) > _CHUNK_BYTES else content or None


def _timeout(request: httpx.Request) -> aiohttp.ClientTimeout:
    limits = request.extensions.get("timeout", {})
    return aiohttp.ClientTimeout(
        total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
    )


def _seconds_to_headers(request: httpx.Request) -> float | None:
    """Bound a request that the server does not even read; aiohttp would wait."""
    limits = request.extensions.get("timeout", {})
    parts = [limits.get(name) for name in ("connect", "write", "read")]
    return None if None in parts else sum(parts)


def _allow_many_sockets() -> None:
    """Raise the limit on open files, which one socket a request would meet."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A process may raise its soft limit up to the hard one without privileges.
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _ascii(reason: str | None) -> bytes:
    return (reason or "").encode("ascii", "replace")


def _as_httpx(error: Exception, request: httpx.Request) -> httpx.HTTPError:
    """Map aiohttp's error to httpx's; the first class that fits wins."""
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    message = message.encode("utf-8", "replace").decode()  # bytes that were no text
    for known, mapped in _MAPPED:
        if isinstance(error, known):
            return mapped(message, request=request)
    return httpx.ReadError(message, request=request)


# The order matters: subclasses first. A connection timeout, for one, is a TimeoutError
# too, but it must count as "never sent".
_MAPPED: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.SocketTimeoutError, httpx.ReadTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.ReadError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
    # Any other error means that the URL or a header cannot be encoded.
    (ValueError, httpx.UnsupportedProtocol),
)
