"""Which task of one run is which of another: by what it says, never by its index."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reward_profiling.choosing.row_matching import Contents


class RunTask(NamedTuple):
    """One (task, agent) of a run, and what it says."""

    place: int
    """Position among the run's units."""
    agent: str
    contents: Contents


class Paired(NamedTuple):
    """Tasks of two runs that say the same."""

    pairs: list[tuple[int, int]]
    """Positions in the baseline and in the candidate."""
    num_changed: int
    """Pairs that differ in settings, such as the temperature."""


def pair_tasks(baseline: Sequence[RunTask], candidate: Sequence[RunTask]) -> Paired:
    """Pair the tasks of two runs, each agent's with the same agent's.

    What says the same to the letter is paired first; then what differs only in what a
    plan may change. Of several that cannot be told apart, as many as both have are
    paired in order.
    """
    same = _matching(baseline, candidate, "whole", [])
    alike = _matching(baseline, candidate, "core", same)
    return Paired(sorted([*same, *alike]), len(alike))


def _matching(
    baseline: Sequence[RunTask],
    candidate: Sequence[RunTask],
    kind: str,
    paired: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    left = _grouped(baseline, kind, {before for before, _ in paired})
    right = _grouped(candidate, kind, {after for _, after in paired})
    return [
        pair
        for key, places in left.items()
        for pair in zip(places, right.get(key, ()), strict=False)
    ]


def _grouped(
    tasks: Iterable[RunTask], kind: str, taken: set[int]
) -> dict[tuple[bytes, str], list[int]]:
    groups: dict[tuple[bytes, str], list[int]] = {}
    for task in tasks:
        if task.place not in taken:
            key = (getattr(task.contents, kind), task.agent)
            groups.setdefault(key, []).append(task.place)
    return groups
