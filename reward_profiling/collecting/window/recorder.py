"""What a collection writes and says: records, failures, timings, numbers, notes.

A failure with the same message as the one before is held back: a row of equal failures
may have one common cause, and then no rollout is to blame.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from reward_profiling.collecting.budgets import (
    Streak,
    is_requests_own,
    signature_of,
)
from reward_profiling.collecting.on_disk.journal import SYNC_SECONDS, Journal
from reward_profiling.collecting.on_disk.timings import timing_line
from reward_profiling.collecting.progress import ObserveProgress, Progress
from reward_profiling.collecting.replies.finished_rollout import (
    Destination,
    FinishedRollout,
)
from reward_profiling.errors import ContextLengthError, GymError
from reward_profiling.files.locking.fence import Fence
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.planning.row_members import RolloutKey

_OBSERVE_SECONDS = 0.25
_MAX_KINDS = 20


class Took(NamedTuple):
    """How long a rollout took."""

    started: float
    """Moment, in seconds of the epoch."""
    seconds: float
    """Retries included."""
    retries: int


@dataclass(slots=True)
class Journals:
    """Where finished rollouts are written."""

    records: Journal
    failures: Journal
    timings: Journal

    @classmethod
    @contextmanager
    def opened(cls, files: RunFiles, *locks: Path) -> Iterator[Self]:
        """Open those of a shard, or of a whole output, until the block ends.

        `locks` are the files of the locks that they may be written under.
        """
        fence = Fence(*locks)
        with (
            Journal(files.rollouts, fence) as records,
            Journal(files.failures, fence) as failures,
            Journal(files.timings, fence) as timings,
        ):
            yield cls(records, failures, timings)


@dataclass(slots=True)
class Recorder:
    """Takes each rollout as it ends."""

    journals: Journals
    progress: Progress
    observe: ObserveProgress
    streak: Streak
    _held: list[tuple[str, FinishedRollout]] = field(default_factory=list)
    """Failures with the same words, by agent, until it is known what they mean."""
    _lost: Counter[RolloutKey] = field(default_factory=Counter)
    """Lost replies of rollouts that have not ended yet."""
    _noted: set[str] = field(default_factory=set)

    def record(
        self,
        planned: PlannedRollout,
        finished: FinishedRollout,
        error: GymError | None,
        took: Took,
    ) -> None:
        """Write a finished rollout; `error` is what it failed by, if it did.

        Raises:
            OutputWriteError: the disk does not take it.
        """
        self.progress.add_duration(took.seconds, planned.name)
        if finished.destination is Destination.RECORDS:
            self._keep(planned, finished)
        else:
            self._fail(planned, finished, error)
        # The record first: on a nearly full disk it matters more than its timing.
        self.journals.timings.append(
            timing_line(
                planned.stamps,
                started=took.started,
                seconds=took.seconds,
                retries=took.retries,
                replies_lost=self._lost.pop(planned.key, 0),
            )
        )

    def _keep(self, planned: PlannedRollout, finished: FinishedRollout) -> None:
        self.journals.records.append(finished.line)
        self.progress.add_record(
            finished.reward,
            agent=planned.runner,
            masked=finished.masked,
            now=time.monotonic(),
        )
        self._write_held()
        for note in finished.notes:
            self.tell(f"{planned.name}: {note}")

    def _fail(
        self, planned: PlannedRollout, finished: FinishedRollout, error: GymError | None
    ) -> None:
        failure_class = finished.failure_class or "not kept by the server"
        self.progress.add_failure(
            failure_class, agent=planned.runner, now=time.monotonic()
        )
        # Each kind of failure is said once; the live numbers count the rest.
        message = finished.message
        kind = signature_of(error) if error else f"{failure_class} {message[:80]}"
        said = f"{planned.name} failed ({failure_class}): {message or 'no message'}"
        self.tell_once(f"failed {kind}", said)
        in_streak = error is not None and self._may_be_general(error)
        if error is None or not in_streak or not self.streak.add(error, planned.key):
            self._write_held(keep_streak=in_streak)
        if finished.destination is not Destination.FAILURES:
            return
        if error is None or is_requests_own(error):
            self.journals.failures.append(finished.line)
        else:
            self._held.append((planned.runner, finished))

    def _may_be_general(self, error: GymError) -> bool:
        """Say whether an error may fail all tasks, rather than be of the one request.

        A request can be wrong in itself, but not where no request has ever been right.
        """
        if isinstance(error, ContextLengthError):
            return False
        has_records = self.progress.found + self.progress.collected > 0
        return not (is_requests_own(error) and has_records)

    def _write_held(self, *, keep_streak: bool = False) -> None:
        """Write the failures held back; what they have in common is over."""
        if self.streak.is_over_limit:
            return  # it has been said that they are no attempts
        for _, failure in self._held:
            self.journals.failures.append(failure.line)
        self._held.clear()
        if not keep_streak:
            self.streak.end()

    def close(self) -> None:
        """Write what is held back, or take it back where all of it has one cause.

        Raises:
            OutputWriteError: the disk does not take it.
        """
        if not self.streak.is_over_limit:
            self._write_held()
            return
        for agent, failure in self._held:
            self.progress.take_back_failure(failure.failure_class, agent=agent)
        self._held.clear()

    def lose_reply(self, planned: PlannedRollout) -> None:
        """Count a request whose reply was lost: the work may be done."""
        self.progress.replies_lost += 1
        self._lost[planned.key] += 1

    def tell(self, note: str | None) -> None:
        """Have the present numbers observed, and a note where there is one."""
        self.observe(self.progress, note)

    def tell_once(self, kind: str, note: str) -> None:
        """Tell the first note of a kind, of so many kinds at most."""
        if kind not in self._noted and len(self._noted) < _MAX_KINDS:
            self._noted.add(kind)
            self.tell(note)

    async def sync_for_ever(self) -> None:
        """Sync records and failures to the disk at intervals."""
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            await self.journals.records.sync()
            await self.journals.failures.sync()

    async def observe_for_ever(self) -> None:
        """Have the present numbers observed at intervals."""
        while True:
            await asyncio.sleep(_OBSERVE_SECONDS)
            self.tell(None)
