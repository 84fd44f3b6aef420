"""Live numbers of a collection: counts, mean reward so far, rate and time left."""

import math
from collections import Counter, deque
from dataclasses import dataclass, field

_WINDOW = 256


@dataclass(slots=True)
class Progress:
    """What a collection has come to so far; times are seconds of one clock."""

    planned: int
    found: int = 0
    """Collected by earlier runs."""
    given_up: int = 0
    started: float = 0.0
    collected: int = 0
    failed: int = 0
    in_flight: int = 0
    retries: int = 0
    scored: int = 0
    """Records whose reward is a finite number and not masked."""
    mean_reward: float | None = None
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by class."""
    _moments: list[float] = field(default_factory=lambda: [0.0, 0.0])
    _finished: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))

    def add_record(self, reward: object, *, masked: bool, now: float) -> None:
        """Count a collected record."""
        self.collected += 1
        self._finished.append(now)
        if masked or not is_reward(reward):
            return
        self.scored += 1
        mean, squares = self._moments
        delta = float(reward) - mean  # type: ignore[arg-type]
        mean += delta / self.scored
        squares += delta * (float(reward) - mean)  # type: ignore[arg-type]
        self._moments = [mean, squares]
        self.mean_reward = mean

    def add_failure(self, failure_class: str, now: float) -> None:
        """Count a failed rollout."""
        self.failed += 1
        self.failures[failure_class] += 1
        self._finished.append(now)

    @property
    def done(self) -> int:
        """Rollouts that need nothing more from this run."""
        return self.found + self.given_up + self.collected + self.failed

    @property
    def left(self) -> int:
        """Rollouts that this run still has to finish."""
        return self.planned - self.done

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean reward over records; None below two."""
        if self.scored < 2:  # noqa: PLR2004 - one value has no spread
            return None
        return math.sqrt(self._moments[1] / (self.scored - 1) / self.scored)

    def rate(self, now: float) -> float | None:
        """Rollouts finished per second over the last few hundred; None at first."""
        if not self._finished:
            return None
        is_whole_run = len(self._finished) < _WINDOW
        elapsed = now - (self.started if is_whole_run else self._finished[0])
        return len(self._finished) / elapsed if elapsed > 0 else None

    def seconds_left(self, now: float) -> float | None:
        """Estimate from the present rate; None while there is none."""
        rate = self.rate(now)
        return None if not rate else self.left / rate


def is_reward(value: object) -> bool:
    """Say whether a record's reward is a number that can be averaged.

    True and false count as 1 and 0, as in Gym; text, null and NaN do not.
    """
    return isinstance(value, int | float) and math.isfinite(value)
