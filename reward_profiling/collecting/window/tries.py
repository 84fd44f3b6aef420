"""One rollout, requested until it ends: its retries, its deadline, its server's gate.

A failed rollout becomes a failure record. A rollout whose server is down waits, and
that costs it no attempt.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from reward_profiling import wire
from reward_profiling.collecting.budgets import signature_of
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.replies.finished_rollout import (
    FinishedRollout,
    finished_by_error,
    record_stamps,
)
from reward_profiling.collecting.replies.reply import (
    finished_by_envelope,
    finished_by_reply,
)
from reward_profiling.collecting.window.recorder import Recorder
from reward_profiling.collecting.window.server_gates import Gate, Gates
from reward_profiling.errors import (
    GymError,
    GymUnavailableError,
    ReplyLostError,
    said_by,
)
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.servers.backoff import backoff_seconds
from reward_profiling.servers.gym_client import GymClient
from reward_profiling.servers.routes import Route
from reward_profiling.texts.redaction import redact, redact_beginning

_QUIET_PATIENCE = 5
"""How many times `retries` a server may ask for quiet before a rollout fails."""


class ServerDownError(Exception):
    """The rollout's server does not answer: the rollout waits and is not charged."""


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


@dataclass(slots=True)
class Asker:
    """Asks for rollouts."""

    client: GymClient
    gates: Gates
    options: CollectOptions
    recorder: Recorder
    draw: Callable[[], float] = random.random
    """Uniform in 0..1, for jitter."""

    async def finish(
        self, planned: PlannedRollout, route: Route, tries: Tries
    ) -> tuple[FinishedRollout, GymError | None]:
        """Ask for a rollout until it ends; return what it failed by, if it did.

        Raises:
            ServerDownError: it waits for its server.
        """
        stamps = record_stamps(planned, route)
        seconds = self.options.rollout_timeout
        try:
            async with asyncio.timeout(seconds):
                reply = await self._ask(planned, route, tries)
            read = finished_by_envelope if planned.is_enveloped else finished_by_reply
            with said_by(route.url + wire.RUN_PATH):
                return read(reply, stamps, redact), None
        except TimeoutError:
            # A request still in flight at the deadline may have done its work.
            if tries.is_asking:
                self.recorder.lose_reply(planned)
            is_down = self.gates[route.url].is_down
            if is_down and tries.put_off(self.options.retries):
                raise ServerDownError from None  # the server's fault, not its own
            error: GymError = _late(route, seconds, tries.last)
        except GymError as failed:
            error = failed
        return finished_by_error(error, stamps, redact_beginning), error

    async def _ask(self, planned: PlannedRollout, route: Route, tries: Tries) -> bytes:
        while True:
            tries.is_asking = True
            try:
                return await self.client.run_rollout(route.url, planned.body)
            except GymUnavailableError as error:
                tries.is_asking, tries.last = False, error
                if isinstance(error, ReplyLostError):
                    self.recorder.lose_reply(planned)
                await self._before_retry(self.gates[route.url], error, tries)

    async def _before_retry(
        self, gate: Gate, error: GymUnavailableError, tries: Tries
    ) -> None:
        """Wait as long as is due before the same rollout is asked for again.

        Raises:
            GymUnavailableError: it is not to be asked for again.
            ServerDownError: the server does not answer, or wants to be left alone.
        """
        lost = isinstance(error, ReplyLostError)
        # A status proves that the server is up, so only a transport fault is probed.
        is_down = error.status is None and not await gate.answers()
        if is_down and not lost:
            raise ServerDownError  # never sent: it costs the rollout nothing
        # A server that asks for a pause is busy, not broken: give it more time. But a
        # rollout that brings its server down repeatedly has failed itself.
        asked_for_quiet = error.retry_after_seconds is not None
        patience = _QUIET_PATIENCE if asked_for_quiet else 1
        if tries.retries >= self.options.retries * patience:
            raise error
        tries.retries += 1
        if is_down:
            raise ServerDownError
        self.recorder.progress.retries += 1
        self.recorder.tell_once(signature_of(error), f"retrying after: {error}")
        if error.retry_after_seconds is not None:
            least = backoff_seconds(tries.retries, self.draw())
            gate.keep_quiet(max(error.retry_after_seconds, least))
            raise ServerDownError
        await asyncio.sleep(backoff_seconds(tries.retries, self.draw()))


def _late(route: Route, seconds: float, last: GymError | None) -> GymUnavailableError:
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
