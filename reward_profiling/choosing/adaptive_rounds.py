"""Adaptive repeats: spends rollouts on tasks that are still undecided.

A task is settled when it is known to pass sometimes and, if a width is given, when the
interval of its pass rate is that narrow; or when it has its maximum of repeats. A task
that stops because it finally passed has a rate biased to the middle. So use adaptive
plans to choose tasks, and equal repeats to measure a mean.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from annotated_types import Ge, Gt, Lt

from reward_profiling.numerics.uncertainty import wilson
from reward_profiling.values import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptiveOptions(Checked):
    """Whether the results of tasks decide on more repeats, and how many."""

    adaptive: bool = False
    """Continue in rounds, with more repeats of the tasks that are still undecided;
    every task starts with --num-repeats."""

    max_repeats: Annotated[int, Ge(2)] = 64
    """Repeats that a task may have at most."""

    target_width: Annotated[float, Gt(0), Lt(1)] | None = None
    """Width of the 95 % interval of a task's pass rate at which it is settled. Default:
    a task is settled as soon as it is known to pass sometimes."""

    max_rollouts: Annotated[int, Ge(1)] | None = None
    """The most rollouts of the whole plan, including the first round. Default: only
    max_repeats limits it."""


class TaskState(NamedTuple):
    """What is known of one (task, agent)."""

    key: Hashable
    planned: int
    """Rollouts planned so far."""
    n: int
    """Scored ones."""
    c: int
    """Passing ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptiveSummary:
    """What an adaptive plan came to so far."""

    num_new: int
    """Rollouts that this round adds; 0 when it is over."""

    num_tasks: int
    """(task, agent) pairs."""

    num_settled: int
    """Tasks about which nothing is open."""

    num_exhausted: int
    """Tasks that are open and get no more: they have the most repeats that they may
    have, or not one scored rollout."""

    num_open: int
    """Tasks that get more repeats, or would if the budget allowed it."""

    planned: int
    """Rollouts planned in all, those of this round included."""

    uniform: int
    """What it would have cost to give every task as many repeats as the one that got
    the most."""

    is_out_of_budget: bool
    """Whether max_rollouts keeps open tasks from more repeats."""


class Round(NamedTuple):
    """The next round: who gets how many more repeats."""

    more: Mapping[Hashable, int]
    summary: AdaptiveSummary


def width(state: TaskState) -> float:
    """Return the width of Wilson's 95 % interval of the pass rate; 1 for no rollout."""
    if not state.n:
        return 1.0
    interval = wilson(state.c, state.n)
    return interval.high - interval.low


def is_settled(state: TaskState, options: AdaptiveOptions) -> bool:
    """Say whether nothing is open about a task.

    One that never or always passed is open until its interval is narrow, or for ever.
    """
    if options.target_width is not None:
        return state.n > 1 and width(state) <= options.target_width
    return 0 < state.c < state.n


def next_round(states: Sequence[TaskState], options: AdaptiveOptions) -> Round:
    """Return who gets how many more repeats; the widest intervals first.

    A round adds half of what a task has, so that what is spent beyond need stays below
    half; no more than its width is expected to take; and no more than it may have.
    Of `max_rollouts` the last tasks get what is left, or nothing.
    """
    open_states = [state for state in states if not is_settled(state, options)]
    # If no rollout of a task was scored, more rollouts probably would not be, either.
    able = [s for s in open_states if s.n and s.planned < options.max_repeats]
    left = None
    if options.max_rollouts is not None:
        left = options.max_rollouts - sum(state.planned for state in states)
    more: dict[Hashable, int] = {}
    for state in sorted(able, key=lambda state: -width(state)):
        wanted = _wanted(state, options)
        given = wanted if left is None else max(0, min(wanted, left))
        if given:
            more[state.key] = given
        if left is not None:
            left -= given
    return Round(more, _summary(states, open_states, able, more))


def _wanted(state: TaskState, options: AdaptiveOptions) -> int:
    room = options.max_repeats - state.planned
    step = max(1, state.planned // 2)
    if options.target_width is not None:
        lost = state.planned - state.n
        step = min(step, max(1, _needed(state, options.target_width) - state.n + lost))
    return min(room, step)


def _needed(state: TaskState, target: float) -> int:
    """Return the rollouts that would narrow the interval at the rate seen so far."""
    n = state.n
    while width(TaskState(None, 0, n, round(n * state.c / state.n))) > target:
        n += max(1, n // 8)
    return n


def _summary(
    states: Sequence[TaskState],
    open_states: Sequence[TaskState],
    able: Sequence[TaskState],
    more: Mapping[Hashable, int],
) -> AdaptiveSummary:
    planned = [state.planned + more.get(state.key, 0) for state in states]
    return AdaptiveSummary(
        num_new=sum(more.values()),
        num_tasks=len(states),
        num_settled=len(states) - len(open_states),
        num_exhausted=len(open_states) - len(able),
        num_open=len(able),
        planned=sum(planned),
        uniform=len(states) * max(planned, default=0),
        is_out_of_budget=len(more) < len(able),
    )


def round_in_words(summary: AdaptiveSummary) -> str:
    """Say what a round does or why there is none, and what equal repeats would cost."""
    told = (
        f"{summary.num_settled} of {summary.num_tasks} tasks settled,"
        f" {summary.num_exhausted} undecided at their limit"
    )
    cost = (
        f"{summary.planned:,} rollouts planned; equal repeats would take"
        f" {summary.uniform:,}"
    )
    if summary.num_new:
        return f"{told}; {summary.num_new} more rollouts of {summary.num_open}; {cost}"
    if summary.is_out_of_budget:
        told += f", {summary.num_open} undecided without rollouts left for them"
    return f"{told}; {cost}"
