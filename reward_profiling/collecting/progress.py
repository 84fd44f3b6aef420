"""Live numbers of a collection: counts, rewards so far, rate, and time left."""

import math
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

_WINDOW = 256
_SLOWEST = 5


@dataclass(slots=True)
class RunningMean:
    """Mean and standard error of what was added (Welford's update)."""

    count: int = 0
    mean: float | None = None
    _squares: float = 0.0

    def add(self, value: float) -> None:
        """Add one value."""
        self.count += 1
        old = self.mean or 0.0
        self.mean = old + (value - old) / self.count
        self._squares += (value - old) * (value - self.mean)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean over values; None below two."""
        if self.count < 2:  # noqa: PLR2004 - one value has no spread
            return None
        return math.sqrt(self._squares / (self.count - 1) / self.count)


@dataclass(slots=True)
class AgentProgress:
    """One agent's part of a collection."""

    planned: int = 0
    done: int = 0
    """Collected, failed or given up, by this run or an earlier one."""
    rewards: RunningMean = field(default_factory=RunningMean)
    is_down: bool = False
    """Whether its server does not answer at present."""


@dataclass(slots=True)
class Progress:
    """What a collection has come to so far; moments are seconds of one clock."""

    planned: int
    name: str = ""
    """Which shard this is, where there are several."""
    found: int = 0
    """Collected by earlier runs."""
    given_up: int = 0
    started: float = 0.0
    collected: int = 0
    failed: int = 0
    retries: int = 0
    """Requests sent again."""
    replies_lost: int = 0
    """Requests whose reply was lost: the server may have done the work."""
    waiting: int = 0
    """Rollouts set aside until their server answers again."""
    rewards: RunningMean = field(default_factory=RunningMean)
    """Rewards that are finite numbers and not masked, those of earlier runs included;
    of this run alone where there are several shards."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by class."""
    agents: dict[str, AgentProgress] = field(default_factory=dict)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    """The slowest finished rollouts: seconds and name, slowest first."""
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """Seconds that the latest rollouts took."""
    in_flight: dict[int, float] = field(default_factory=dict)
    """Moment at which each running rollout started, by slot."""
    _finished: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))

    def agent(self, name: str) -> AgentProgress:
        """Return the part of one agent."""
        return self.agents.setdefault(name, AgentProgress())

    def add_record(
        self, reward: object, *, agent: str, masked: bool, now: float
    ) -> None:
        """Count a collected record."""
        self.collected += 1
        self._finish(agent, now)
        if not masked and is_reward(reward):
            value = float(reward)  # type: ignore[arg-type]
            self.rewards.add(value)
            self.agent(agent).rewards.add(value)

    def add_failure(self, failure_class: str, *, agent: str, now: float) -> None:
        """Count a failed rollout."""
        self.failed += 1
        self.failures[failure_class] += 1
        self._finish(agent, now)

    def take_back_failure(self, failure_class: str, *, agent: str) -> None:
        """Uncount a failure that was not the rollout's own; it is owed again."""
        self.failed -= 1
        self.failures[failure_class] -= 1
        self.agent(agent).done -= 1

    def _finish(self, agent: str, now: float) -> None:
        self.agent(agent).done += 1
        self._finished.append(now)

    def add_duration(self, seconds: float, name: str) -> None:
        """Note how long a rollout took, and whether it is among the slowest."""
        self.durations.append(seconds)
        if len(self.slowest) < _SLOWEST or seconds > self.slowest[-1][0]:
            self.slowest = sorted([*self.slowest, (seconds, name)], reverse=True)
            del self.slowest[_SLOWEST:]

    @property
    def done(self) -> int:
        """Rollouts that need nothing more from this run."""
        return self.found + self.given_up + self.collected + self.failed

    @property
    def left(self) -> int:
        """Rollouts that this run still has to finish."""
        return self.planned - self.done

    def rate(self, now: float) -> float | None:
        """Rollouts finished per second over the last few hundred; None at first."""
        if not self._finished:
            return None
        # Until the window is full, the first rollouts' own duration must count, too.
        is_whole_run = len(self._finished) < _WINDOW
        elapsed = now - (self.started if is_whole_run else self._finished[0])
        return len(self._finished) / elapsed if elapsed > 0 else None

    def seconds_left(self, now: float) -> float | None:
        """Estimate the time to the last rollout; None while nothing has finished.

        Two bounds, and the later one counts: what is not started takes its turn at the
        present rate, and what runs has its own tail to finish.
        """
        rate = self.rate(now)
        if not rate or not self.left:
            return None
        not_started = max(0, self.left - len(self.in_flight))
        ages = [now - moment for moment in self.in_flight.values()]
        return max(not_started / rate, longest_residual(ages, self.durations))


class ObserveProgress(Protocol):
    """Hears of a collection's progress; it must return quickly and never raise."""

    def __call__(self, progress: Progress, note: str | None) -> None:
        """Take the present numbers, and a sentence for the log if there is one."""


def silent(progress: Progress, note: str | None) -> None:
    """Observe nothing."""


def longest_residual(ages: Iterable[float], durations: Iterable[float]) -> float:
    """Return how long the slowest of the running rollouts may still take.

    Of each, the mean rest of the seen durations that are longer than its age; one that
    is older than all of them is expected to take as long again (Lindy's law).
    """
    seen = sorted(durations)
    # sums[i] is the total of the i longest.
    sums = [0.0, *accumulate(reversed(seen))]
    longest = 0.0
    for age in ages:
        beyond = len(seen) - bisect_right(seen, age)
        residual = sums[beyond] / beyond - age if beyond else age
        longest = max(longest, residual)
    return longest


def is_reward(value: object) -> bool:
    """Say whether a record's reward is a number that can be averaged.

    True and false count as 1 and 0, as in Gym; text, null and NaN do not.
    """
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
