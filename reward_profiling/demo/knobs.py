"""Faults to order over HTTP, and counters of what `/run` was asked.

Every knob is off by default, so that nobody meets a fault who did not turn one on.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from aiohttp import web

from reward_profiling.errors import ConfigError


@dataclass(frozen=True)
class Knobs:
    """What goes wrong on purpose; a `_match` is looked for in the raw request."""

    latency_ms: float = -1.0
    """Takes the place of the scripted latency; negative leaves it."""

    fail_status: int = 0
    """HTTP status of a failing request; 0 fails none."""

    fail_match: str = ""
    """Which requests fail; empty means all."""

    fail_first: int = 0
    """Only so many matching requests fail; 0 means all of them."""

    fail_body: str = '"scripted failure"'
    """Body of a failing reply, verbatim."""

    retry_after: str = ""
    """`Retry-After` header of a failing reply."""

    hang_match: str = ""
    """Which requests are never answered; empty means none."""

    drop_match: str = ""
    """Which requests lose their connection once read; empty means none."""

    raw_reply_match: str = ""
    """Which requests get `raw_reply`; empty means none."""

    raw_reply: str = ""
    """Body of such a reply, verbatim, with status 200."""

    pad_bytes: int = 0
    """Filler characters put before the text of every answer."""

    constant_match: str = ""
    """Which requests are rewarded by `constant_reward`, whatever the answer."""

    constant_reward: float = 0.0
    """What a verifier that reads no answer gives."""


class Faults:
    """The current knobs, and what they and the requests have come to."""

    def __init__(self) -> None:
        self.knobs = Knobs()
        self._num_failed = 0
        self._num_requests = 0
        self._num_in_flight = 0
        self._max_in_flight = 0
        self._requests_by_key: Counter[str] = Counter()

    def merge(self, changes: Mapping[str, object]) -> None:
        """Turn some knobs; turning any `fail_` knob resets the count of `fail_first`.

        Raises:
            ConfigError: A knob is unknown or its value is of the wrong type.
        """
        checked: dict[str, Any] = {one: _checked(one, changes[one]) for one in changes}
        self.knobs = replace(self.knobs, **checked)
        if any(name.startswith("fail_") for name in changes):
            self._num_failed = 0

    def snapshot(self) -> dict[str, object]:
        """Give knobs and counters."""
        return {
            "knobs": asdict(self.knobs),
            "requests": self._num_requests,
            "failed": self._num_failed,
            "in_flight": self._num_in_flight,
            "max_in_flight": self._max_in_flight,
            "by_key": dict(self._requests_by_key),
        }

    @contextmanager
    def counted(self, key: str | None) -> Iterator[None]:
        """Count a request of `/run` while it is in flight."""
        self._num_requests += 1
        self._num_in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self._num_in_flight)
        if key is not None:
            self._requests_by_key[key] += 1
        try:
            yield
        finally:
            self._num_in_flight -= 1

    def reward(self, verified: float, body: bytes) -> float:
        """Give the verifier's reward, or the constant that a knob asks for."""
        knobs = self.knobs
        is_constant = _is_hit(knobs.constant_match, body)
        return knobs.constant_reward if is_constant else verified

    async def reply(self, request: web.Request, body: bytes) -> web.Response | None:
        """Answer in place of the environment when a knob asks for it."""
        knobs = self.knobs
        if _is_hit(knobs.hang_match, body):
            await asyncio.Event().wait()
        if _is_hit(knobs.drop_match, body) and request.transport is not None:
            request.transport.close()
            return web.Response()
        if _is_hit(knobs.raw_reply_match, body):
            return _verbatim(knobs.raw_reply, 200)
        return self._failure(body)

    def _failure(self, body: bytes) -> web.Response | None:
        knobs = self.knobs
        is_over = 0 < knobs.fail_first <= self._num_failed
        if not knobs.fail_status or is_over or knobs.fail_match.encode() not in body:
            return None
        self._num_failed += 1
        reply = _verbatim(knobs.fail_body, knobs.fail_status)
        if knobs.retry_after:
            reply.headers["Retry-After"] = knobs.retry_after
        return reply


def _is_hit(match: str, body: bytes) -> bool:
    return bool(match) and match.encode() in body


def _verbatim(text: str, status: int) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json")


def _checked(name: str, value: object) -> object:
    kinds = {one: type(default) for one, default in asdict(Knobs()).items()}
    if name not in kinds:
        raise ConfigError(f"unknown knob {name!r}; known ones: {', '.join(kinds)}")
    accepted = (int, float) if kinds[name] is float else (kinds[name],)
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise ConfigError(f"knob {name}: {value!r} has the wrong type")
    return value
