"""Whether servers may be asked: they answer, and did not ask for a pause.

The first failing request, or a health check, notices that a server is down. Then its
rollouts wait, and it gets only health checks, less and less often.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field

from reward_profiling.collecting.window.recorder import Recorder
from reward_profiling.errors import GymError
from reward_profiling.servers.backoff import backoff_seconds
from reward_profiling.servers.gym_client import GymClient
from reward_profiling.servers.routes import Route

HEALTH_INTERVAL_SECONDS = 5.0
_PROBE_SECONDS = 5.0
_MISSES = 3
_PROBE_CAP_SECONDS = 15.0


@dataclass(slots=True)
class Gate:
    """Stands before one server."""

    url: str
    client: GymClient
    draw: Callable[[], float]
    """Uniform in 0..1, for jitter."""
    changed: asyncio.Event
    """Set whenever the gate opens or closes."""
    tell: Callable[[str], None]
    down_since: float | None = None
    in_flight: int = 0
    _quiet_until: float = 0.0
    _probe: asyncio.Task[bool] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def is_down(self) -> bool:
        """Whether the server does not answer."""
        return self.down_since is not None

    @property
    def is_open(self) -> bool:
        """Whether a rollout may start here now."""
        return self.down_since is None and self.quiet_seconds == 0.0

    @property
    def quiet_seconds(self) -> float:
        """How long the server still wants to be left alone."""
        return max(0.0, self._quiet_until - time.monotonic())

    def keep_quiet(self, seconds: float) -> None:
        """Leave the server alone for a while, as it asked (Retry-After)."""
        # Add some jitter, so that not all requests return at the same instant.
        until = time.monotonic() + seconds + self.draw() * min(1.0, seconds)
        if until > self._quiet_until:
            self._quiet_until = until
            asyncio.get_running_loop().call_later(
                until - time.monotonic(), self.changed.set
            )

    async def answers(self) -> bool:
        """Ask the server for its health; callers at the same time share one question.

        One that does not answer is down from now on, until it does.
        """
        if self.is_down:
            return False
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._is_alive())
        # Shielded: one caller's cancellation must not cancel the probe of others.
        alive = await asyncio.shield(self._probe)
        if not alive and not self.is_down:
            self._close()
        return alive

    async def _is_alive(self) -> bool:
        try:
            await self.client.probe(self.url, _PROBE_SECONDS)
        except GymError:
            return False
        return True

    def _close(self) -> None:
        self.down_since = time.monotonic()
        self.tell(f"{self.url} does not answer; its rollouts wait until it does")
        self.changed.set()
        self._start(self._until_it_answers())

    async def _until_it_answers(self) -> None:
        since = self.down_since or time.monotonic()
        tries = 0
        while not await self._is_alive():
            tries += 1
            wait = 0.5 + backoff_seconds(tries, self.draw())
            await asyncio.sleep(min(wait, _PROBE_CAP_SECONDS))
        self.down_since = None
        self.tell(f"{self.url} answers again after {time.monotonic() - since:.0f} s")
        self.changed.set()

    def watch(self) -> None:
        """Ask for the server's health at intervals while rollouts run on it."""
        self._start(self._watch())

    async def _watch(self) -> None:
        misses = 0
        while True:
            await asyncio.sleep(HEALTH_INTERVAL_SECONDS)
            if self.is_down or not self.in_flight:
                misses = 0
                continue
            # A busy server may miss one check, so a single miss does not close it.
            misses = 0 if await self._is_alive() else misses + 1
            if misses >= _MISSES and not self.is_down:
                self._close()

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Stop asking."""
        for task in [*self._tasks, *([self._probe] if self._probe else [])]:
            task.cancel()


@dataclass(slots=True)
class Gates:
    """The gates of all servers that rollouts of a plan are sent to, by their URL."""

    client: GymClient
    routes: Mapping[str, Route]
    recorder: Recorder
    draw: Callable[[], float] = random.random
    """Uniform in 0..1, for jitter."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a gate opens or closes."""
    _gates: dict[str, Gate] = field(init=False)

    def __post_init__(self) -> None:
        """Put a gate before each server."""
        urls = dict.fromkeys(route.url for route in self.routes.values())
        self._gates = {
            url: Gate(url, self.client, self.draw, self.changed, self._tell)
            for url in urls
        }

    def __getitem__(self, url: str) -> Gate:
        """Return the gate before the server at a URL."""
        return self._gates[url]

    def is_open(self, url: str) -> bool:
        """Say whether a rollout may start now on the server at a URL."""
        return self._gates[url].is_open

    @property
    def is_any_busy(self) -> bool:
        """Whether a rollout runs on a server that answers."""
        gates = self._gates.values()
        return any(gate.in_flight and not gate.is_down for gate in gates)

    def waited(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield each server's URL, and for how many seconds it has not answered."""
        for url, gate in self._gates.items():
            yield url, now - (gate.down_since or now)

    def watch(self) -> None:
        """Ask for the health of every server at intervals while rollouts run on it."""
        for gate in self._gates.values():
            gate.watch()

    def stop(self) -> None:
        """Stop asking."""
        for gate in self._gates.values():
            gate.stop()

    def _tell(self, note: str) -> None:
        """Tell that a server went away, or came back, and mark the agents on it."""
        progress = self.recorder.progress
        for agent, route in self.routes.items():
            progress.agent(agent).is_down = self._gates[route.url].is_down
        self.recorder.tell(note)
