"""When a reward passes, and how many of several do."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import ge

MIN_ROLLOUTS = 2
"""With fewer scored rollouts a task is undetermined."""
PASS_TOLERANCE = 1e-9
"""How far below the threshold rounding may leave a reward that passes."""


def is_pass(reward: float, threshold: float) -> bool:
    """Return whether a reward reaches the threshold, within the tolerance."""
    return reward >= threshold - PASS_TOLERANCE


def num_passing(rewards: Iterable[float], threshold: float) -> int:
    """Return how many rewards pass (see `is_pass`)."""
    return sum(map(ge, rewards, repeat(threshold - PASS_TOLERANCE)))


def pass_rate(rewards: Sequence[float], threshold: float) -> float:
    """Return the share of rewards at or above `threshold`, in 0..1; n >= 1."""
    return num_passing(rewards, threshold) / len(rewards)
