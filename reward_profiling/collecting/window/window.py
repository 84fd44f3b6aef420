"""A sliding window over the owed rollouts, with a bounded number in flight.

One loop starts rollouts while there is room and a server that may be asked. Rollouts of
a server that does not answer wait. If a stop rule applies, no more rollouts start, and
running ones get some time to finish.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from reward_profiling.collecting.dispatcher import Dispatcher
from reward_profiling.collecting.window.recorder import Recorder, Took
from reward_profiling.collecting.window.server_gates import Gates
from reward_profiling.collecting.window.stop_rules import (
    SIGNAL_DRAIN_SECONDS,
    Stop,
    StopRules,
)
from reward_profiling.collecting.window.tries import Asker, ServerDownError, Tries
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.servers.routes import Route
from reward_profiling.stop_scope import Cause, StopScope

_BURST = 64


@dataclass(slots=True)
class Window:
    """Runs a dispatcher's rollouts on their routes."""

    dispatcher: Dispatcher
    routes: Mapping[str, Route]
    gates: Gates
    asker: Asker
    rules: StopRules
    recorder: Recorder
    concurrency: int
    stop: Stop | None = None
    _slots: set[asyncio.Task[None]] = field(default_factory=set)
    _error: BaseException | None = None

    async def run(self, scope: StopScope) -> None:
        """Run until nothing is owed, a rule is met, or the scope asks to stop.

        Raises:
            OutputWriteError: the disk does not take a record.
        """
        helpers = [
            asyncio.create_task(self.recorder.sync_for_ever()),
            asyncio.create_task(self.recorder.observe_for_ever()),
        ]
        for helper in helpers:
            helper.add_done_callback(self._heed)
        self.gates.watch()
        try:
            with scope.on_stop(self._stop_for):
                await self._start_all()
                await self._drain()
        finally:
            await _cancelled([*helpers, *self._slots])
            self.gates.stop()
            self.recorder.close()
        if self._error is not None:
            raise self._error
        self.recorder.tell(None)

    async def _start_all(self) -> None:
        started = 0
        while self.stop is None and self._error is None:
            # Clear first: a change during this round must end the next wait.
            self.gates.changed.clear()
            self.stop = self.rules.judge(time.monotonic())
            if self.stop is not None:
                return
            if len(self._slots) >= self.concurrency:
                await self._wait()
                continue
            taken = self.dispatcher.take(self.gates.is_open)
            self.recorder.progress.waiting = self.dispatcher.num_waiting
            if taken is None:
                if not self._slots and self.dispatcher.is_done:
                    return
                await self._wait()
                continue
            self._start(*taken)
            started += 1
            if started % _BURST == 0:
                await asyncio.sleep(0)  # let the connections of the burst start

    def _start(self, planned: PlannedRollout, retries: int) -> None:
        route = self.routes[planned.runner]
        self.gates[route.url].in_flight += 1
        slot = asyncio.create_task(self._run(planned, route, Tries(retries)))
        self._slots.add(slot)  # the event loop itself keeps only a weak reference
        self.recorder.progress.in_flight[id(slot)] = time.monotonic()
        slot.add_done_callback(self._ended)

    def _ended(self, slot: asyncio.Task[None]) -> None:
        self._slots.discard(slot)
        self.recorder.progress.in_flight.pop(id(slot), None)  # one that never began
        self._heed(slot)

    def _heed(self, ended: asyncio.Task[None]) -> None:
        """End the collection with what a task of it failed by, helpers included."""
        if not ended.cancelled() and (error := ended.exception()) is not None:
            self._error = self._error or error
        self.gates.changed.set()

    async def _wait(self) -> None:
        """Wait until something ends or opens, or it is time to judge again."""
        # The limit is for rules on time: no event wakes those.
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self.gates.changed.wait()

    async def _run(self, planned: PlannedRollout, route: Route, tries: Tries) -> None:
        """Run one rollout to its end and write it, or set it aside."""
        moment, clock = time.time(), time.monotonic()
        try:
            finished, error = await self.asker.finish(planned, route, tries)
        except ServerDownError:
            self.dispatcher.set_aside(planned, tries.retries)
            return
        finally:
            self.gates[route.url].in_flight -= 1
            self.recorder.progress.in_flight.pop(id(asyncio.current_task()), None)
        took = Took(moment, time.monotonic() - clock, tries.retries)
        self.recorder.record(planned, finished, error, took)

    def _stop_for(self, cause: Cause) -> None:
        if self.stop is None:
            self.stop = Stop(
                cause.reason, SIGNAL_DRAIN_SECONDS, is_failure=cause.is_failure
            )
            self.gates.changed.set()

    async def _drain(self) -> None:
        """Let what runs finish for a while, then let go of it; it stays owed."""
        if self.stop is None or self._error is not None:
            return
        self.recorder.tell(f"starting no more rollouts: {self.stop.reason}")
        if self._slots:
            await asyncio.wait(self._slots, timeout=self.stop.drain_seconds)
        if self._slots:
            self.recorder.tell(
                f"dropped {len(self._slots)} rollouts in flight; they are still owed"
            )


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
