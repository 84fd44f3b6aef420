"""Gym's servers over HTTP: the one place that knows httpx.

Every fault leaves here as one of our errors, sorted by whether asking again can help
(`reward_profiling.errors`). Source: `gym-contract.md` §3.1, §3.3, §6.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, Never

import httpx
import orjson
import yaml

from reward_profiling import wire
from reward_profiling.errors import (
    ContextLengthError,
    GymError,
    GymRejectedError,
    GymUnavailableError,
    ReplyLostError,
    ServersNotReadyError,
)
from reward_profiling.servers.backoff import retry_after_seconds
from reward_profiling.servers.demo_token import authorization
from reward_profiling.servers.http_transport import AiohttpTransport, ReplyTooLargeError
from reward_profiling.texts.context_length import is_about_context_length
from reward_profiling.texts.error_texts import innermost
from reward_profiling.texts.redaction import learn_configuration, redact
from reward_profiling.texts.secret_values import without_secrets

_JSON = {"Content-Type": "application/json"}
_SHOWN_CHARACTERS = 300
_READ = 16_384
"""Characters of an error's body that are looked at; a failure shows 2,000."""
_READ_BYTES = 262_144
_RETRY_STATUSES = frozenset({408, 425, 429})
_HEAD_SECONDS = 30.0
_AGGREGATE_SECONDS = 900.0
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Instance(NamedTuple):
    """One server, as the head server lists it."""

    name: str
    url: str
    pid: int | None
    """Of the process that the head server watches, on its own machine."""


class GymClient:
    """Speaks to the head server and to the environment servers."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def is_ready(self, head_url: str) -> bool:
        """Say whether the head server is up and all its servers are ready.

        A head server older than this probe answers 404; it counts as ready.

        Raises:
            GymUnavailableError: the head server does not answer.
            GymRejectedError: what answers, or the URL, is not a head server's.
        """
        async with _within(_HEAD_SECONDS, head_url):
            reply = await self._send("GET", head_url + wire.READY_PATH)
        if reply.is_server_error or reply.status_code == httpx.codes.NOT_FOUND:
            return not reply.is_server_error
        _raise_for_status(reply)
        return True

    async def probe(self, server_url: str, seconds: float = 10.0) -> None:
        """Ask a server for a sign of life; any answer is one.

        Raises:
            GymUnavailableError: none came in time.
        """
        async with _within(seconds, server_url):
            await self._send("GET", server_url + "/")

    async def configuration(self, head_url: str) -> Mapping[str, Any]:
        """Return the merged configuration without its secrets.

        They are kept in mind, so that no text of an error shows one.

        Raises:
            GymError: the head server does not answer.
            ServersNotReadyError: its answer is not a configuration.
        """
        async with _within(_HEAD_SECONDS, head_url):
            reply = await self._send("GET", head_url + wire.CONFIG_PATH)
        _raise_for_status(reply)
        config = _configuration(reply.content)
        if not isinstance(config, dict):
            raise ServersNotReadyError(
                f"{head_url}{wire.CONFIG_PATH} answered without a configuration; give"
                " the address of NeMo Gym's head server"
            )
        learn_configuration(config)
        masked: Mapping[str, Any] = without_secrets(config)
        return masked

    async def instances(self, head_url: str) -> list[Instance]:
        """Return the servers that the head server has started.

        None while it has started none, and where it does not say.
        """
        with suppress(GymError, ValueError, LookupError, TypeError):
            reply = await self._send("GET", head_url + wire.INSTANCES_PATH)
            _raise_for_status(reply)
            return [
                Instance(str(one["process_name"]), str(one["url"]), _pid(one))
                for one in orjson.loads(reply.content)
            ]
        return []

    async def is_healthy(self, server_url: str) -> bool:
        """Say whether a server answers for its health."""
        with suppress(GymError):
            reply = await self._send("GET", server_url + wire.HEALTH_PATH)
            return not reply.is_server_error
        return False

    async def run_rollout(self, server_url: str, row: bytes) -> bytes:
        """Post one planned row to `/run` and return the reply's body.

        Raises:
            GymUnavailableError: asking again may help.
            GymRejectedError: it would not.
        """
        reply = await self._send("POST", server_url + wire.RUN_PATH, row)
        _raise_for_status(reply)
        return reply.content

    async def aggregate_metrics(
        self, server_url: str, records: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Post collected records to `/aggregate_metrics` and return the answer.

        Raises:
            GymError: the server cannot, or answers with something else.
        """
        try:
            body = orjson.dumps({"verify_responses": records})
        except TypeError as error:
            raise GymRejectedError(f"a record cannot be sent: {error}") from error
        async with _within(_AGGREGATE_SECONDS, server_url):
            reply = await self._send("POST", server_url + wire.AGGREGATE_PATH, body)
        _raise_for_status(reply)
        try:
            answer = orjson.loads(reply.content)
        except orjson.JSONDecodeError as error:
            raise GymRejectedError(f"the answer is not JSON: {error}") from error
        if not isinstance(answer, dict):
            raise GymRejectedError("the answer is JSON but not an object")
        return answer

    async def _send(
        self, method: str, url: str, content: bytes | None = None
    ) -> httpx.Response:
        try:
            kind = {} if content is None else _JSON
            return await self._http.request(
                method, url, content=content, headers={**kind, **authorization(url)}
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            _raise_mapped(error, url)


@asynccontextmanager
async def _within(seconds: float, url: str) -> AsyncIterator[None]:
    """Bound a whole exchange: a body that trickles in passes every read timeout.

    Raises:
        GymUnavailableError: it took longer.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        said = f"{url} gave no complete answer within {seconds:g} s"
        raise GymUnavailableError(said, kind="Timeout") from error


@asynccontextmanager
async def gym_client(
    *, read_seconds: float | None = None, connect_seconds: float = 10.0
) -> AsyncIterator[GymClient]:
    """Open a client; its connections close at the end."""
    async with httpx.AsyncClient(
        transport=AiohttpTransport(),
        timeout=httpx.Timeout(read_seconds, connect=connect_seconds),
        trust_env=False,
        follow_redirects=False,
    ) as http:
        yield GymClient(http)


def _pid(instance: Mapping[str, Any]) -> int | None:
    pid = instance.get("pid")
    return pid if isinstance(pid, int) and pid > 0 else None


def _configuration(content: bytes) -> object:
    """Parse JSON, or YAML in a JSON string; None when it is neither.

    The parser's own error shows an excerpt, which may hold secrets: it ends here.
    """
    with suppress(ValueError, yaml.YAMLError, RecursionError):
        config = orjson.loads(content)
        if not isinstance(config, str):
            return config
        return yaml.load(config, Loader=yaml.CSafeLoader)
    return None


def _raise_mapped(error: Exception, url: str) -> Never:
    """Raise our error for httpx's."""
    kind = type(error).__name__
    message = redact(f"{url}: {kind}: {error}".removesuffix(": "))
    if isinstance(error, ReplyTooLargeError | httpx.DecodingError):
        raise GymRejectedError(message, kind=kind, status=httpx.codes.OK) from error
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        raise GymRejectedError(message, kind=kind) from error
    if isinstance(error, _NEVER_SENT):
        raise GymUnavailableError(message, kind=kind) from error
    raise ReplyLostError(message, kind=kind) from error


def _raise_for_status(reply: httpx.Response) -> None:
    """Raise unless the status is 2xx.

    Raises:
        GymError: with the status, the server's own text and its Retry-After.
    """
    if reply.is_success:
        return
    status = reply.status_code
    # JSON is UTF-8; the charset that a header names may not be one of text at all.
    text = redact(reply.content[:_READ_BYTES].decode("utf-8", "replace"), _READ)
    # What is unwrapped may show a secret that was spelled otherwise before.
    shown = redact(innermost(text), _SHOWN_CHARACTERS)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    said = f": {shown}" if shown else ", with an empty body"
    reason = redact(f"{status} {reply.reason_phrase}", _SHOWN_CHARACTERS).rstrip()
    message = f"{reply.request.url} answered {reason}{said}"
    retryable = status in _RETRY_STATUSES or reply.is_server_error
    error: type[GymError] = GymUnavailableError if retryable else GymRejectedError
    # An agent passes its model's refusal on as a 500, which looks like a fault.
    if status not in _RETRY_STATUSES and is_about_context_length(text):
        error = ContextLengthError
    raise error(
        message,
        kind="HTTPStatusError",
        status=status,
        body=text,
        retry_after_seconds=retry_after_seconds(
            reply.headers.get("Retry-After"), datetime.now(UTC)
        ),
    )
