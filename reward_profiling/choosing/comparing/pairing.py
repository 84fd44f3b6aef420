"""Matches the tasks of two runs: by their content, never by their index."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from reward_profiling.choosing.comparing.task_pairs import Side
from reward_profiling.choosing.row_matching import Contents
from reward_profiling.planning.row_members import TaskIndex

Positions = list[tuple[int, int]]
"""Positions in the baseline and in the candidate, one of each a pair."""


class RunTask(NamedTuple):
    """One (task, agent) of a run, and what it says."""

    agent: str
    contents: Contents
    task_index: TaskIndex
    """Its index in this run."""
    side: Side | None = None
    """Its numbers; None where nothing is scored."""
    label: str | None = None
    """The beginning of its prompt."""


class Paired(NamedTuple):
    """Tasks of two runs that say the same."""

    pairs: Positions
    num_changed: int
    """Pairs that differ in settings, such as the temperature."""


def pair_tasks(baseline: Sequence[RunTask], candidate: Sequence[RunTask]) -> Paired:
    """Pair the tasks of two runs, each agent's with the same agent's.

    Identical tasks are paired first; then those that differ only in what a plan may
    change. If several are indistinguishable, they are paired in order, as many as both
    runs have. Pairs come in the order of the baseline.
    """
    same = _matching(baseline, candidate, "whole", [])
    alike = _matching(baseline, candidate, "core", same)
    return Paired(sorted([*same, *alike]), len(alike))


Part = Literal["whole", "core"]


def _matching(
    baseline: Sequence[RunTask],
    candidate: Sequence[RunTask],
    part: Part,
    paired: Positions,
) -> Positions:
    left = _grouped(baseline, part, {before for before, _ in paired})
    right = _grouped(candidate, part, {after for _, after in paired})
    return [
        pair
        for key, places in left.items()
        for pair in zip(places, right.get(key, ()), strict=False)
    ]


def _grouped(
    tasks: Sequence[RunTask], part: Part, taken: Collection[int]
) -> dict[tuple[bytes, str], list[int]]:
    groups: dict[tuple[bytes, str], list[int]] = {}
    for place, task in enumerate(tasks):
        if place not in taken:
            key = (getattr(task.contents, part), task.agent)
            groups.setdefault(key, []).append(place)
    return groups
