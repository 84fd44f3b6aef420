"""What becomes of a task, by how often it was passed.

Rollouts that are masked, failed or without a reward decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from reward_profiling.choosing.selection import Order, SelectOptions, Verdict


class Counts(NamedTuple):
    """What decides about a task."""

    n: int
    """Scored rollouts."""
    c: int
    """Of those, the ones that pass."""
    has_signal: bool
    """Whether their rewards differ."""

    @property
    def rate(self) -> Fraction:
        """Pass rate; n >= 1."""
        return Fraction(self.c, self.n)


class Decision(NamedTuple):
    """What becomes of a task, and why."""

    verdict: Verdict
    reason: str
    """In words; "" for what is kept."""
    rate: Fraction | None = None
    """Pass rate; None without a scored rollout."""


def decide(counts: Counts | None, options: SelectOptions) -> Decision:
    """Decide about one task; None for a row that was not planned."""
    if counts is None:
        return Decision("undetermined", "not in the plan")
    if not counts.n:
        return Decision("undetermined", "no scored rollout")
    rate, needed = counts.rate, options.min_rollouts
    if counts.n < needed:
        return Decision("undetermined", f"fewer than {needed} scored rollouts", rate)
    place = options.band.place(rate)
    if options.has_band and place:
        reason = "passes too rarely" if place < 0 else "passes too often"
        return Decision("rejected", reason, rate)
    if options.drop_zero_signal and not counts.has_signal:
        return Decision("rejected", "all rewards are the same", rate)
    return Decision("kept", "", rate)


_SORT: Mapping[Order, Callable[[Fraction], Fraction]] = {
    "input": lambda _: Fraction(),
    "hard-first": lambda rate: rate,
    "easy-first": lambda rate: -rate,
    "informative-first": lambda rate: abs(rate - Fraction(1, 2)),
}


def ordered(rates: Sequence[Fraction], order: Order) -> list[int]:
    """Return positions in the order asked for; equal rates stay as they stand."""
    return sorted(range(len(rates)), key=lambda place: _SORT[order](rates[place]))
