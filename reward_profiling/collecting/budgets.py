"""What bounds a collection: a budget of failures, a streak of equal ones, a margin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from reward_profiling.errors import ContextLengthError, GymError
from reward_profiling.numerics.figures import percent
from reward_profiling.planning.row_members import RolloutKey

MIN_SAMPLE = 10
"""Finished rollouts before a share of failures means anything."""
_MIN_DURATIONS = 5
_SIGNATURE_CHARACTERS = 400
_VARYING = re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f-]{2,}\b|\d+")
"""Numbers and identifiers, which differ between errors that are otherwise alike."""


PATTERN = r"^(\d+\.?\d*|\.\d+)([eE]-?\d+)? *%?$"
"""How a bound is written; forms refuse anything else."""


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """How many failures a run may have: a count, a share of what finished, or any."""

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> "FailureBudget":
        """Read "10" as a count, "10%" and "0.1" as a share; None sets no bound.

        Raises:
            ValueError: the text is neither.
        """
        if text is None:
            return cls()
        try:
            if text.endswith("%"):
                share = float(text[:-1]) / 100.0
            elif text.isdigit():
                return cls(count=int(text))
            else:
                share = float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            raise ValueError(f"{text!r} is neither a count, such as 10, nor a share")
        return cls(share=share)

    def exceeded(self, failed: int, finished: int) -> str | None:
        """Say why `failed` of `finished` rollouts are too many; None if they are not.

        A share is judged from `MIN_SAMPLE` finished rollouts on.
        """
        if self.count is not None and failed > self.count:
            return f"{failed} rollouts failed, more than {self.count}"
        if self.share is None or finished < MIN_SAMPLE:
            return None
        if failed > self.share * finished:
            return f"{failed} of {finished} rollouts failed, over {percent(self.share)}"
        return None


_OF_THE_REQUEST = frozenset({400, 413, 422})
"""Statuses by which a server says that the request itself is wrong."""


def is_requests_own(error: GymError) -> bool:
    """Say whether an error is about the one request, and so the task's own."""
    return isinstance(error, ContextLengthError) or error.status in _OF_THE_REQUEST


@dataclass(slots=True)
class Streak:
    """Failures one after another with the same words, and nothing else between.

    One wrong setting, such as a bad key, fails the rollouts of every task in the same
    way. Such failures are no attempts of the rollouts, so the caller holds them back.
    A few broken tasks fail alike, too: what counts are different tasks.
    """

    limit: int
    """Rollouts that may fail alike."""
    num_tasks: int
    """Tasks of the plan, counted to `limit`."""
    signature: str | None = None
    message: str = ""
    """The last error's own words."""
    is_charged: bool = False
    """Whether its failures count as attempts, since they are about the requests."""
    keys: set[RolloutKey] = field(default_factory=set)

    def add(self, error: GymError, key: RolloutKey) -> bool:
        """Note a failure of rollout `key`; say whether it continues the streak."""
        if self.is_over_limit:
            return True
        signature = signature_of(error)
        continues = self.signature == signature
        if not continues:
            self.signature, self.keys = signature, set()
        self.keys.add(key)
        self.message, self.is_charged = str(error), is_requests_own(error)
        return continues

    def end(self) -> None:
        """Note a success: whatever failed, not everything fails alike.

        One that comes after the streak has stopped the run does not change that.
        """
        if not self.is_over_limit:
            self.signature, self.keys = None, set()

    @property
    def num_failed_tasks(self) -> int:
        """Different tasks in the streak."""
        return len({task for task, _ in self.keys})

    @property
    def is_over_limit(self) -> bool:
        """Whether so many rollouts of so many tasks failed alike that the rest would.

        Half as many tasks as rollouts, or all tasks of a smaller plan, but not a single
        one: all repeats of one broken task fail alike.
        """
        needed = max(2, min((self.limit + 1) // 2, self.num_tasks))
        return len(self.keys) >= self.limit and self.num_failed_tasks >= needed


def signature_of(error: GymError) -> str:
    """Return what errors of one kind have in common: their words without numbers."""
    text = _VARYING.sub("#", error.body or str(error))[:_SIGNATURE_CHARACTERS]
    return f"{error.kind} {error.status} {text}"


def drain_margin(durations: Sequence[float]) -> float:
    """Return the seconds that a rollout must still have to be worth starting.

    The 75th percentile of what was seen, as in Gym (`gym-contract.md` §3.4); 0.0 while
    fewer than five have finished.
    """
    if len(durations) < _MIN_DURATIONS:
        return 0.0
    ordered = sorted(durations)
    return ordered[min(len(ordered) - 1, int(0.75 * len(ordered)))]
