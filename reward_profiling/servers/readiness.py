"""Waiting for servers: until every one of them answers, or the wait is hopeless."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_profiling.errors import GymError, GymRejectedError, ServersNotReadyError
from reward_profiling.servers.gym_client import GymClient, Instance, gym_client
from reward_profiling.servers.routes import Servers
from reward_profiling.servers.server_states import (
    FAILED,
    READY,
    STARTING,
    ObserveServers,
    ServerState,
)

_FIRST_POLL_SECONDS = 0.05
_POLL_SECONDS = 0.5
TELL_SECONDS = 3.0
_PROBE_SECONDS = 10.0
_HEALTH_SECONDS = 2.0
HEAD = "head server"
ABSENT_SECONDS = 15.0
"""How long nothing may listen where servers should be found running."""


def unseen(states: Sequence[ServerState]) -> None:
    """Observe nothing."""


async def wait_until_ready(
    head_url: str,
    timeout_seconds: float,
    say: Callable[[str], None] = lambda _: None,
    observe: ObserveServers = unseen,
    *,
    absent_seconds: float = ABSENT_SECONDS,
) -> Servers:
    """Wait until every server behind a head server is ready, and read which they are.

    Nothing may listen for `absent_seconds`: servers that are found are up by then. A
    wait of some seconds is said once.

    Raises:
        ServersNotReadyError: nothing listens there, or it was not ready in time.
    """
    waiting = ReadyWait(head_url, timeout_seconds, observe, say, absent=absent_seconds)
    problem = await waiting.until_ready()
    if problem is not None:
        raise ServersNotReadyError(problem)
    try:
        return await read_servers(head_url)
    except GymError as error:
        raise ServersNotReadyError(str(error)) from error


async def read_servers(head_url: str) -> Servers:
    """Ask the head server which servers there are.

    Raises:
        ServersNotReadyError: it has no usable configuration.
        GymError: it does not answer.
    """
    async with gym_client(read_seconds=30.0) as client:
        return Servers(await client.configuration(head_url), head_url)


def _never(_: int) -> bool:
    return False


@dataclass(slots=True)
class ReadyWait:
    """One wait for the servers behind a head server."""

    head_url: str
    timeout: float
    observe: ObserveServers = unseen
    say: Callable[[str], None] = lambda _: None
    absent: float | None = None
    """How long nothing may listen; None for as long as the whole wait."""
    tell: float = TELL_SECONDS
    has_ended: Callable[[int], bool] = _never
    """Says of the process of a server whether it has ended."""
    is_own: Callable[[Mapping[str, Any]], bool] | None = None
    """Says by its configuration whether the head server is the one that is waited for;
    None where it is, whatever answers."""
    is_foreign: bool = False
    """Whether something else answered in the head server's place."""
    instances: list[Instance] = field(default_factory=list)
    states: dict[str, ServerState] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    async def until_ready(self) -> str | None:
        """Wait; return None, or the reason why waiting longer is hopeless."""
        told = False
        async with gym_client(read_seconds=_PROBE_SECONDS) as client:
            while True:
                limit, problem = await self._ask(client)
                waited = self._waited
                if problem is None or limit == 0.0:
                    return problem
                if waited > limit:
                    return (
                        f"the head server {self.head_url} was not ready within"
                        f" {round(limit, 1):g} s: {problem}"
                    )
                if not told and waited > self.tell:
                    told = True
                    self.say(f"waiting for {self.head_url}: {problem}")
                pause = min(_POLL_SECONDS, _FIRST_POLL_SECONDS + waited / 4)
                await asyncio.sleep(pause)

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._started

    def lost(self) -> list[str]:
        """Return the names of the servers whose process has ended by now, in order."""
        return [
            one.name
            for one in self.instances
            if one.pid is not None and self.has_ended(one.pid)
        ]

    @property
    def failed(self) -> list[str]:
        """Names of the servers whose process was seen to have ended, in order."""
        return [s.name for s in self.states.values() if s.state == FAILED]

    @property
    def late(self) -> list[str]:
        """Names of the servers that are not ready, in order."""
        return [
            s.name
            for s in self.states.values()
            if s.state not in {READY, FAILED} and s.name != HEAD
        ]

    async def _ask(self, client: GymClient) -> tuple[float, str | None]:
        """Ask once; return how long to wait in all, and what there is to wait for."""
        try:
            is_ready = await client.is_ready(self.head_url)
            await self._recognise(client)
        except (GymRejectedError, ServersNotReadyError) as error:
            self.is_foreign = self.is_own is not None
            return 0.0, f"no head server of NeMo Gym is at {self.head_url}: {error}"
        except GymError as error:
            was_up = HEAD in self.states and self.states[HEAD].state != STARTING
            self._note(HEAD, "does not answer any more" if was_up else STARTING)
            self.observe(self._in_order())
            absent = self.timeout if self.absent is None else self.absent
            return min(absent, self.timeout), str(error)
        await self._look(client, is_ready=is_ready)
        if failed := self.failed:
            return 0.0, f"failed: {', '.join(failed)}"
        if is_ready:
            return self.timeout, None
        if self.late:
            return self.timeout, f"still starting: {', '.join(self.late)}"
        return self.timeout, "its servers are still starting"

    async def _recognise(self, client: GymClient) -> None:
        """Check once that what answers is the head server that is waited for.

        Raises:
            ServersNotReadyError: it is another one.
            GymError: it does not say.
        """
        if self.is_own is not None:
            if not self.is_own(await client.configuration(self.head_url)):
                raise ServersNotReadyError("another head server answers")
            self.is_own = None

    async def _look(self, client: GymClient, *, is_ready: bool) -> None:
        """See which servers there are, and which of them are healthy."""
        if is_ready and not self.states:
            return  # it was up when it was found
        self.instances = await client.instances(self.head_url)
        asked = [one for one in self.instances if not self._is_known_ready(one.name)]
        healthy = await asyncio.gather(*(_is_healthy(client, i.url) for i in asked))
        for instance, is_up in zip(asked, healthy, strict=True):
            state = READY if is_up or is_ready else STARTING
            self._note(instance.name, state)
        for name in self.lost():
            self._note(name, FAILED)
        if is_ready:
            self._note(HEAD, READY)
        elif self.instances and not self.late:
            self._note(HEAD, "waiting for the model endpoints")
        else:
            self._note(HEAD, "waiting for its servers")
        self.observe(self._in_order())

    def _in_order(self) -> list[ServerState]:
        """Return the states, the head server's last: it is ready after all others."""
        return sorted(self.states.values(), key=lambda state: state.name == HEAD)

    def _is_known_ready(self, name: str) -> bool:
        return name in self.states and self.states[name].is_ready

    def _note(self, name: str, state: str) -> None:
        self.states[name] = ServerState(name, state, self._waited)


async def _is_healthy(client: GymClient, url: str) -> bool:
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            return await client.is_healthy(url)
    except TimeoutError:
        return False
