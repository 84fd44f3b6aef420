"""How the tasks of a run did, at a glance: for `inspect`."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from reward_profiling.collecting.ledger import DEFAULT_MAX_ATTEMPTS
from reward_profiling.collecting.on_disk.failures import Failures
from reward_profiling.numerics.uncertainty import mean_of
from reward_profiling.profiling.passes import pass_rate
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable

_TENTHS = 10
_NO_RECORD = (RolloutStatus.FAILED, RolloutStatus.MISSING)


class TaskGlance(msgspec.Struct, frozen=True):
    """One task's scored rollouts."""

    task_index: int | str
    scored: int
    """Scored rollouts: the mean's n."""
    planned: int
    """Rollouts planned."""
    mean_reward: float
    """Mean of the scored rewards."""
    pass_rate: float
    """Share of the scored rollouts that pass, 0..1."""
    first_row: int
    """First row of the task in the table."""


class Tenth(msgspec.Struct, frozen=True):
    """The tasks whose mean reward lies in one tenth of the range."""

    low: float
    """Lower bound, which belongs to it."""
    high: float
    """Upper bound, which belongs to the next tenth, or to the last one."""
    num_tasks: int


def glances(table: RolloutTable, pass_threshold: float) -> list[TaskGlance]:
    """Return the tasks that have a scored rollout, in key order."""
    found = []
    for start, stop in table.spans():
        rewards = [
            table.reward[row]
            for row in range(start, stop)
            if table.status[row] == RolloutStatus.SCORED
        ]
        if rewards:
            found.append(
                TaskGlance(
                    task_index=table.tasks[table.task[start]],
                    scored=len(rewards),
                    planned=stop - start,
                    mean_reward=mean_of(rewards),
                    pass_rate=pass_rate(rewards, pass_threshold),
                    first_row=start,
                )
            )
    return found


def tenths(means: Sequence[float]) -> list[Tenth]:
    """Return how many means lie in each tenth: of 0..1, or of their own range.

    One tenth where all are equal and none is in 0..1; none where there are no means.
    """
    if not means:
        return []
    low, high = min(means), max(means)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    span = high - low
    if not span or not math.isfinite(span):
        return [Tenth(low, high, len(means))]
    bounds = [low + span * at / _TENTHS for at in range(_TENTHS)]
    counts = Counter(bisect_right(bounds, mean) - 1 for mean in means)
    return [
        Tenth(bound, following, counts[at])
        for at, (bound, following) in enumerate(pairwise([*bounds, high]))
    ]


def extremes(
    tasks: Iterable[TaskGlance], count: int
) -> tuple[list[TaskGlance], list[TaskGlance]]:
    """Return the tasks with the highest and with the lowest mean, ends first.

    A task is in one of the two at most.
    """
    ranked = sorted(tasks, key=lambda task: task.mean_reward)
    most = min(count, (len(ranked) + 1) // 2)
    least = ranked[: min(count, len(ranked) - most)]
    return ranked[len(ranked) - most :][::-1], least


def num_given_up(table: RolloutTable, failures: dict[Any, Failures]) -> int:
    """Count the rollouts without a record that will not be tried again."""
    return sum(
        failures[key].is_terminal or failures[key].number >= DEFAULT_MAX_ATTEMPTS
        for row, status in enumerate(table.status)
        if status in _NO_RECORD
        and (key := (table.tasks[table.task[row]], table.rollout[row])) in failures
    )
