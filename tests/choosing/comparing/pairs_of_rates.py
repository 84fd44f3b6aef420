"""Pairs of tasks made from how often both runs passed them, of four rollouts."""

from hypothesis import strategies as st

from reward_profiling.choosing.comparing.task_pairs import (
    Pair,
    Side,
)
from reward_profiling.numerics.uncertainty import variance

RATES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=5, max_size=30
)


def side(task: int, passed: int, n: int = 4) -> Side:
    rewards = [1.0] * passed + [0.0] * (n - passed)
    return Side(task, n, passed, passed / n, variance(rewards))


def pairs_of(rates: list[tuple[int, int]], agent: str = "a") -> list[Pair]:
    return [Pair(agent, side(t, a), side(t, b)) for t, (a, b) in enumerate(rates)]
