"""The httpx API over aiohttp's sockets.

httpx's own pool walks all connections for every request, so that its cost grows with
the square of what is in flight; here a connection is found in constant time. Nothing
queues in the pool: how many requests are in flight is the caller's decision. Three
kinds of fault stay apart, since they decide whether a request may be sent again:

- never sent: `httpx.ConnectError`, `httpx.ConnectTimeout`;
- sent, and perhaps carried out: `httpx.ReadError`, `httpx.ReadTimeout`,
  `httpx.RemoteProtocolError`, `httpx.WriteError`;
- answered, but longer than the bound: `ReplyTooLargeError`.
"""

from types import TracebackType
from typing import Self

import aiohttp
import httpx

KEEPALIVE_SECONDS = 4.0
"""Below uvicorn's 5 s, so that we close an idle connection before the server does."""

MAX_REPLY_BYTES = 256 * 1024 * 1024
_CHUNK_BYTES = 1 << 18
_SINGLE = {b"content-length", b"transfer-encoding", b"host"}


class ReplyTooLargeError(httpx.ReadError):
    """The reply's body passes the bound; asking again would not help."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends httpx requests through one aiohttp session; closed with its client."""

    def __init__(self, *, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._max_reply_bytes = max_reply_bytes
        self._session: aiohttp.ClientSession | None = None

    def _opened(self) -> aiohttp.ClientSession:
        # Made at the first request: a session belongs to the loop that runs it.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEEPALIVE_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its reply whole.

        Raises:
            httpx.TransportError: by kind, as the module says.
        """
        content = await request.aread()
        headers = [
            (name.decode("ascii"), value.decode("latin-1"))
            for name, value in request.headers.raw
            if name.lower() not in _SINGLE
        ]
        try:
            async with self._opened().request(
                request.method,
                str(request.url),
                data=content or None,
                headers=headers,
                allow_redirects=False,
                timeout=_timeout(request),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            ) as reply:
                body = await self._read(reply)
        except (aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error, request) from error
        return httpx.Response(reply.status, headers=reply.raw_headers, content=body)

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        bound = self._max_reply_bytes
        announced = reply.content_length
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


def _timeout(request: httpx.Request) -> aiohttp.ClientTimeout:
    limits = request.extensions.get("timeout", {})
    return aiohttp.ClientTimeout(
        total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
    )


def _as_httpx(error: Exception, request: httpx.Request) -> httpx.HTTPError:
    """Map aiohttp's error to httpx's; the first class that fits wins."""
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    for known, mapped in _MAPPED:
        if isinstance(error, known):
            return mapped(message, request=request)
    return httpx.ReadError(message, request=request)


_MAPPED: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.SocketTimeoutError, httpx.ReadTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.ReadError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.ClientOSError, httpx.ReadError),
)
