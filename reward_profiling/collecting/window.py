"""A sliding window over the owed rollouts: so many in flight, each handled as it ends.

One loop starts rollouts while there is room and a server that may be asked. A rollout
that came to nothing is a failure record; a server that does not answer keeps its
rollouts waiting; a budget that is used up ends the starting, and what runs is let
finish for a while.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from reward_profiling import wire
from reward_profiling.collecting.budgets import (
    FailureBudget,
    Streak,
    drain_margin,
    signature_of,
)
from reward_profiling.collecting.dispatcher import Dispatcher
from reward_profiling.collecting.on_disk.journal import SYNC_SECONDS, Journal
from reward_profiling.collecting.on_disk.timings import timing_line
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import Progress
from reward_profiling.collecting.replies import (
    Fate,
    Outcome,
    outcome_of_envelope,
    outcome_of_error,
    outcome_of_reply,
)
from reward_profiling.collecting.server_gate import Gate
from reward_profiling.errors import GymError, GymUnavailableError, ReplyLostError
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.servers.backoff import backoff_seconds
from reward_profiling.servers.gym_client import GymClient
from reward_profiling.servers.routes import Route
from reward_profiling.stop_scope import Cause, on_stop
from reward_profiling.texts.redaction import redact

OBSERVE_SECONDS = 0.25
SIGNAL_DRAIN_SECONDS = 4.0
FAILURE_DRAIN_SECONDS = 60.0
_BURST = 64
_QUIET_PATIENCE = 5
"""How many times `retries` a server may ask for quiet before a rollout fails."""
_MAX_KINDS = 20


class Observer(Protocol):
    """Hears of a collection's progress; it must return quickly and never raise."""

    def __call__(self, progress: Progress, note: str | None) -> None:
        """Take the present numbers, and a sentence for the log if there is one."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why no more rollouts are started, and how long those running may still take."""

    reason: str
    drain_seconds: float
    is_failure: bool


class _ServerDownError(Exception):
    """The rollout's server does not answer: the rollout waits and is not charged."""


@dataclass(slots=True)
class Journals:
    """Where finished rollouts are written."""

    records: Journal
    failures: Journal
    timings: Journal


@dataclass(slots=True)
class Window:
    """Runs a dispatcher's rollouts on their routes."""

    client: GymClient
    routes: Mapping[str, Route]
    dispatcher: Dispatcher
    options: CollectOptions
    concurrency: int
    journals: Journals
    progress: Progress
    observe: Observer
    draw: Callable[[], float] = random.random
    stop: Stop | None = None
    _gates: dict[str, Gate] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _streak: Streak = field(init=False)
    _budget: FailureBudget = field(init=False)
    _held: list[tuple[str, Outcome]] = field(default_factory=list)
    """Failures with the same words, by agent, until it is known what they mean."""
    _slots: set[asyncio.Task[None]] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)
    _deadline: float | None = None
    _error: BaseException | None = None

    def __post_init__(self) -> None:
        """Set up the gates and the budgets."""
        self._streak = Streak(self.options.identical_failures)
        self._budget = FailureBudget.parse(self.options.max_failures)
        for route in self.routes.values():
            if route.url not in self._gates:
                self._gates[route.url] = Gate(
                    route.url, self.client, self.draw, self._changed, self._tell
                )

    async def run(self) -> None:
        """Run until nothing is owed, a budget is used up, or a signal comes.

        Raises:
            OutputWriteError: the disk does not take a record.
        """
        if self.options.time_budget is not None:
            self._deadline = self.progress.started + self.options.time_budget
        helpers = [
            asyncio.create_task(self._sync_for_ever()),
            asyncio.create_task(self._observe_for_ever()),
        ]
        for gate in self._gates.values():
            gate.watch()
        try:
            with on_stop(self._stop_for):
                await self._start_all()
                await self._drain()
        finally:
            await _cancelled([*helpers, *self._slots])
            for gate in self._gates.values():
                gate.stop()
            if self._streak.is_over_limit:
                self._take_back_held()
            else:
                self._write_held()
        if self._error is not None:
            raise self._error
        self.observe(self.progress, None)

    async def _start_all(self) -> None:
        started = 0
        while self.stop is None and self._error is None:
            self._changed.clear()
            self._judge()
            if self.stop is not None:
                return
            if len(self._slots) >= self.concurrency:
                await self._wait()
                continue
            taken = self.dispatcher.take(self._is_open)
            self.progress.waiting = self.dispatcher.num_waiting
            if taken is None:
                if not self._slots and self.dispatcher.is_done:
                    return
                await self._wait()
                continue
            self._start(*taken)
            started += 1
            if started % _BURST == 0:
                await asyncio.sleep(0)  # let the connections of the burst begin

    def _start(self, planned: PlannedRollout, retries: int) -> None:
        route = self.routes[planned.runner]
        self._gates[route.url].in_flight += 1
        task = asyncio.create_task(self._run(planned, route, retries))
        self._slots.add(task)
        self.progress.in_flight[id(task)] = time.monotonic()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._slots.discard(task)
        self.progress.in_flight.pop(id(task), None)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error

    async def _wait(self) -> None:
        """Wait until something ends or opens, or it is time to judge again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._changed.wait()

    def _is_open(self, url: str) -> bool:
        return self._gates[url].is_open

    def _tell(self, note: str) -> None:
        for agent, route in self.routes.items():
            self.progress.agent(agent).is_down = self._gates[route.url].is_down
        self.observe(self.progress, note)

    async def _run(self, planned: PlannedRollout, route: Route, retries: int) -> None:
        """Run one rollout to its end and write it, or set it aside."""
        moment, clock = time.time(), time.monotonic()
        gate = self._gates[route.url]
        tries = Tries(retries)
        try:
            outcome, error = await self._finish(planned, route, tries)
        except _ServerDownError:
            self.dispatcher.set_aside(planned, tries.retries)
            return
        finally:
            gate.in_flight -= 1
        seconds = time.monotonic() - clock
        self.progress.add_duration(seconds, planned.name)
        self._settle(planned, outcome, error)
        # After the record: on a disk that is nearly full, the record is what counts.
        self.journals.timings.append(
            timing_line(
                planned.stamps, started=moment, seconds=seconds, retries=tries.retries
            )
        )

    async def _finish(
        self, planned: PlannedRollout, route: Route, tries: "Tries"
    ) -> tuple[Outcome, GymError | None]:
        stamps = _stamps(planned, route)
        seconds = self.options.rollout_timeout
        try:
            async with asyncio.timeout(seconds):
                reply = await self._ask(planned, route, tries)
            judged = outcome_of_envelope if planned.is_enveloped else outcome_of_reply
            return judged(reply, stamps, redact), None
        except TimeoutError:
            self.progress.replies_lost += tries.is_asking
            is_down = self._gates[route.url].is_down
            if is_down and tries.put_off(self.options.retries):
                raise _ServerDownError from None  # the server's fault, not its own
            error: GymError = late(route, seconds, tries.last)
        except GymError as failed:
            error = failed
        return outcome_of_error(error, stamps, redact), error

    async def _ask(
        self, planned: PlannedRollout, route: Route, tries: "Tries"
    ) -> bytes:
        gate = self._gates[route.url]
        while True:
            tries.is_asking = True
            try:
                return await self.client.run_rollout(route.url, planned.body)
            except GymUnavailableError as error:
                tries.is_asking, tries.last = False, error
                await self._before_retry(gate, error, tries)

    async def _before_retry(
        self, gate: Gate, error: GymUnavailableError, tries: "Tries"
    ) -> None:
        """Wait as long as is due before the same rollout is asked for again.

        Raises:
            GymUnavailableError: it is not to be asked for again.
            _ServerDownError: the server does not answer, or wants to be left alone.
        """
        lost = isinstance(error, ReplyLostError)
        self.progress.replies_lost += lost
        is_down = error.status is None and not await gate.answers()
        if is_down and not lost:
            raise _ServerDownError  # never sent: it costs the rollout nothing
        # A server that asks for quiet is busy, not broken: it gets more patience. And a
        # rollout that brings its server down again and again is its own failure.
        asked_for_quiet = error.retry_after_seconds is not None
        patience = _QUIET_PATIENCE if asked_for_quiet else 1
        if tries.retries >= self.options.retries * patience:
            raise error
        tries.retries += 1
        if is_down:
            raise _ServerDownError
        self.progress.retries += 1
        self._note_once(signature_of(error), f"asked again after: {error}")
        if error.retry_after_seconds is not None:
            least = backoff_seconds(tries.retries, self.draw())
            gate.keep_quiet(max(error.retry_after_seconds, least))
            raise _ServerDownError
        await asyncio.sleep(backoff_seconds(tries.retries, self.draw()))

    def _settle(
        self, planned: PlannedRollout, outcome: Outcome, error: GymError | None
    ) -> None:
        """Write a finished rollout, and judge what its end says of the run."""
        if outcome.fate is Fate.COLLECTED:
            self.journals.records.append(outcome.line)
            self.progress.add_record(
                outcome.reward,
                agent=planned.runner,
                masked=outcome.masked,
                now=time.monotonic(),
            )
            self._write_held()
            for note in outcome.notes:
                self.observe(self.progress, f"{planned.name}: {note}")
            return
        failure_class = outcome.failure_class or "not kept by the server"
        self.progress.add_failure(
            failure_class, agent=planned.runner, now=time.monotonic()
        )
        self._note_failure(planned, failure_class, outcome.message, error)
        if error is None or not self._streak.add(error, planned.key):
            self._write_held(keep_streak=error is not None)
        if outcome.fate is Fate.FAILED:
            self._held.append((planned.runner, outcome))
        if error is None:
            self._write_held()

    def _note_failure(
        self,
        planned: PlannedRollout,
        failure_class: str,
        message: str,
        error: GymError | None,
    ) -> None:
        """Say each kind of failure once; the live numbers count the rest."""
        kind = signature_of(error) if error else f"{failure_class} {message[:80]}"
        said = f"{planned.name} failed ({failure_class}): {message or 'no word'}"
        self._note_once(f"failed {kind}", said)

    def _note_once(self, kind: str, note: str) -> None:
        if kind not in self._noted and len(self._noted) < _MAX_KINDS:
            self._noted.add(kind)
            self.observe(self.progress, note)

    def _write_held(self, *, keep_streak: bool = False) -> None:
        """Write the failures held back; what they have in common is over."""
        for _, outcome in self._held:
            self.journals.failures.append(outcome.line)
        self._held.clear()
        if not keep_streak:
            self._streak.end()

    def _judge(self) -> None:
        """End the starting of rollouts when a budget is used up."""
        if self._streak.is_over_limit:
            self._stop_for_streak()
            return
        progress, now = self.progress, time.monotonic()
        finished = progress.collected + progress.failed
        if exceeded := self._budget.exceeded(progress.failed, finished):
            self.stop = Stop(exceeded, FAILURE_DRAIN_SECONDS, is_failure=True)
        elif self._deadline is not None:
            left = self._deadline - now
            if left <= 0 or left < drain_margin(progress.durations):
                reason = f"the time budget of {self.options.time_budget:g} s is used up"
                self.stop = Stop(reason, max(left, 0.0), is_failure=False)
        busy = sum(gate.in_flight for gate in self._gates.values() if not gate.is_down)
        if self.stop is None and not busy:
            self._judge_patience(now)

    def _judge_patience(self, now: float) -> None:
        for url, gate in self._gates.items():
            waited = now - (gate.down_since or now)
            if not gate.in_flight and not self.dispatcher.is_wanted(url):
                continue
            if waited > self.options.server_patience:
                self.stop = Stop(
                    f"{gate.url} has not answered for {waited:.0f} s; its rollouts are"
                    " still owed",
                    0.0,
                    is_failure=False,
                )

    def _stop_for_streak(self) -> None:
        count = len(self._streak.keys)
        self.stop = Stop(
            f"{count} rollouts one after another failed in the same way, so that the"
            f" rest would too: {self._streak.message}. They are not counted as"
            " attempts; mend the cause and run the same command again",
            SIGNAL_DRAIN_SECONDS,
            is_failure=True,
        )

    def _take_back_held(self) -> None:
        for agent, outcome in self._held:
            self.progress.take_back_failure(outcome.failure_class, agent=agent)
        self._held.clear()

    def _stop_for(self, cause: Cause) -> None:
        if self.stop is None:
            self.stop = Stop(
                cause.reason, SIGNAL_DRAIN_SECONDS, is_failure=cause.is_failure
            )
            self._changed.set()

    async def _drain(self) -> None:
        """Let what runs finish for a while, then let go of it; it stays owed."""
        if self.stop is None or self._error is not None:
            return
        self.observe(self.progress, f"no more rollouts are started: {self.stop.reason}")
        if self._slots:
            await asyncio.wait(self._slots, timeout=self.stop.drain_seconds)
        if self._slots:
            self.observe(
                self.progress,
                f"let go of {len(self._slots)} rollouts in flight; they are still owed",
            )

    async def _sync_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            await self.journals.records.sync()
            await self.journals.failures.sync()

    async def _observe_for_ever(self) -> None:
        while True:
            await asyncio.sleep(OBSERVE_SECONDS)
            self.observe(self.progress, None)


@dataclass(slots=True)
class Tries:
    """How often a rollout was asked for again, and what the last answer was."""

    retries: int
    is_asking: bool = False
    """Whether a request is on its way."""
    last: GymError | None = None

    def put_off(self, limit: int) -> bool:
        """Say whether the rollout may wait for its server and be asked for once more.

        One whose request was on its way may be done already: it is sent again only
        within `limit` retries, so that with 0 it never is.
        """
        if self.is_asking and self.retries >= limit:
            return False
        self.retries += self.is_asking
        return True


def late(route: Route, seconds: float, last: GymError | None) -> GymUnavailableError:
    """Return the error of a rollout that passed its deadline; the last answer shows."""
    said = f"{route.url}{wire.RUN_PATH} gave no reply within {seconds:g} s"
    if last is None:
        return GymUnavailableError(said, kind="RolloutTimeout")
    return GymUnavailableError(
        f"{said}; the last answer was: {last}",
        kind="RolloutTimeout",
        status=last.status,
        body=last.body,
    )


def _stamps(planned: PlannedRollout, route: Route) -> dict[str, object]:
    stamps = dict(planned.stamps)
    if route.server is not None:
        stamps[wire.ENVIRONMENT_SERVER] = route.server
        stamps[wire.RESULT_TYPE] = route.result_type
    return stamps


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
