"""Tasks that both runs scored, and which of them flipped between pass and fail."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reward_profiling.choosing.comparison import Flip, McNemar
from reward_profiling.planning.row_members import TaskIndex


class Side(NamedTuple):
    """One task in one run; n >= 1."""

    task_index: TaskIndex
    n: int
    """Scored rollouts."""
    c: int
    """Of those, the ones that pass."""
    value: float
    """Mean reward or pass rate, as the measure says."""
    variance: float | None
    """Sample variance within the task; None below two rollouts."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A task that both runs scored."""

    agent: str
    baseline: Side
    candidate: Side
    label: str | None = None

    @property
    def difference(self) -> float:
        """Candidate less baseline."""
        return self.candidate.value - self.baseline.value


def _passes(side: Side) -> bool | None:
    """Say whether most rollouts pass; None for exactly half."""
    return None if 2 * side.c == side.n else 2 * side.c > side.n


def mcnemar_of(pairs: Sequence[Pair]) -> McNemar:
    """Count the tasks that most rollouts pass, before and after, over all pairs."""
    told = [(_passes(pair.baseline), _passes(pair.candidate)) for pair in pairs]
    gained = told.count((False, True))
    lost = told.count((True, False))
    both, neither = told.count((True, True)), told.count((False, False))
    return McNemar(
        gained=gained,
        lost=lost,
        both=both,
        neither=neither,
        undecided=len(told) - gained - lost - both - neither,
        p_value=mcnemar_p(gained, lost),
    )


def mcnemar_p(gained: int, lost: int) -> float | None:
    """Return the exact two-sided p-value of a split, in 0..1; None for no flips."""
    n = gained + lost
    if not n:
        return None
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << n))


def flips_of(pairs: Sequence[Pair]) -> tuple[Flip, ...]:
    """Return the tasks that flipped: lost ones first, then by how far they moved."""
    flipped = [
        pair
        for pair in pairs
        if {_passes(pair.baseline), _passes(pair.candidate)} == {True, False}
    ]
    flipped.sort(key=lambda pair: (not _passes(pair.baseline), -abs(pair.difference)))
    return tuple(
        Flip(
            agent=pair.agent,
            baseline_task=pair.baseline.task_index,
            candidate_task=pair.candidate.task_index,
            label=pair.label,
            is_lost=bool(_passes(pair.baseline)),
            baseline_passed=pair.baseline.c,
            baseline_scored=pair.baseline.n,
            candidate_passed=pair.candidate.c,
            candidate_scored=pair.candidate.n,
        )
        for pair in flipped
    )
