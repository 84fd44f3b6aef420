"""When a collection stops by itself: failures, one repeated error, time, patience.

A stop leaves the rest owed: running the same command again continues.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from reward_profiling.collecting.budgets import (
    FailureBudget,
    Streak,
    drain_margin,
)
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import Progress
from reward_profiling.collecting.window.server_gates import Gates

SIGNAL_DRAIN_SECONDS = 4.0
_FAILURE_DRAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Stop:
    """Why no more rollouts are started, and how long those running may still take."""

    reason: str
    drain_seconds: float
    is_failure: bool


@dataclass(slots=True)
class StopRules:
    """Judges whether more rollouts are to be started."""

    options: CollectOptions
    progress: Progress
    streak: Streak
    gates: Gates
    is_wanted: Callable[[str], bool]
    """Says of a server's URL whether rollouts wait for it, or may yet."""
    _budget: FailureBudget = field(init=False)

    def __post_init__(self) -> None:
        """Read the budget of failures."""
        self._budget = FailureBudget.parse(self.options.max_failures)

    def judge(self, now: float) -> Stop | None:
        """Return why to stop; None to go on. `now` is of the clock of the progress."""
        return (
            self._same_failures()
            or self._failures()
            or self._time(now)
            or self._patience(now)
        )

    def _same_failures(self) -> Stop | None:
        if not self.streak.is_over_limit:
            return None
        charged = "count" if self.streak.is_charged else "do not count"
        return Stop(
            f"{len(self.streak.keys)} rollouts of {self.streak.num_failed_tasks} tasks"
            " in a row failed in the same way, and the rest probably would, too:"
            f" {self.streak.message}. They {charged} as attempts. Fix the cause and run"
            " the same command again; --identical-failures raises the limit of"
            f" {self.streak.limit}",
            SIGNAL_DRAIN_SECONDS,
            is_failure=True,
        )

    def _failures(self) -> Stop | None:
        failed = self.progress.failed
        exceeded = self._budget.exceeded(failed, self.progress.collected + failed)
        if exceeded is None:
            return None
        return Stop(exceeded, _FAILURE_DRAIN_SECONDS, is_failure=True)

    def _time(self, now: float) -> Stop | None:
        budget = self.options.time_budget
        if budget is None:
            return None
        left = self.progress.started + budget - now
        if left > 0 and left >= drain_margin(self.progress.durations):
            return None
        reason = f"the time budget of {budget:g} s is used up"
        return Stop(reason, max(left, 0.0), is_failure=False)

    def _patience(self, now: float) -> Stop | None:
        """Judge how long servers are away, once nothing runs on any other."""
        if self.gates.is_any_busy:
            return None
        for url, seconds in self.gates.waited(now):
            is_needed = self.gates[url].in_flight or self.is_wanted(url)
            if is_needed and seconds > self.options.server_patience:
                return Stop(
                    f"{url} has not answered for {seconds:.0f} s; its rollouts are"
                    " still owed",
                    0.0,
                    is_failure=False,
                )
        return None
