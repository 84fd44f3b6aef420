"""The table of tasks, in columns: what the page searches, sorts and opens.

Columns pack well and hold 50,000 tasks of 8 rollouts in a few megabytes. Enumerations
are a letter each, in text as long as the table; names of agents stand once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reward_profiling.insights.document import Insights
from reward_profiling.insights.task_insights import RolloutNumbers, TaskInsight
from reward_profiling.reporting.page.words import LABEL_LENGTH, NAME_LENGTH, clean

_CLASS_LETTERS = {"never": "n", "sometimes": "s", "always": "a", "undetermined": "u"}
_STATE_LETTERS = {
    "scored": "s", "unscored": "u", "masked": "m", "failed": "f", "missing": "x",
}  # fmt: skip
_FLAG_LETTERS = {True: "y", False: "n", None: "-"}
_COUNTS = (
    "planned", "scored", "unscored", "masked", "failed", "missing", "passed",
    "num_with_tokens", "truncated", "empty", "distinct_answers", "rank",
)  # fmt: skip
_NUMBERS = ("pass_rate", "mean", "std", "min", "max", "mean_tokens")
_BOUNDS = ("upper_bound", "lower_bound")
_DIGITS = 9
_BOUND_DIGITS = 6
_EXACT = 2**53
"""From here on, a browser's numbers no longer tell whole numbers apart."""


def task_columns(insights: Insights, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the tasks as columns of one length, in the order of the insights.

    `names` gives each agent's shown name.
    """
    tasks = insights.tasks
    agents = list(names)
    position = {name: index for index, name in enumerate(agents)}
    columns: dict[str, Any] = {
        "num_tasks": len(tasks),
        "agents": [names[name] for name in agents],
        "agent": [position[task.agent] for task in tasks],
        "task_index": [_index(task.task_index) for task in tasks],
        "label": _labels(tasks),
        "class": "".join(_CLASS_LETTERS[task.task_class] for task in tasks),
        "signal": "".join(_FLAG_LETTERS[task.has_signal] for task in tasks),
        "low": [task.interval and _short(task.interval.low) for task in tasks],
        "high": [task.interval and _short(task.interval.high) for task in tasks],
    }
    for name in _COUNTS:
        columns[name] = [getattr(task, name) for task in tasks]
    for name in _NUMBERS:
        columns[name] = _numbers(getattr(task, name) for task in tasks)
    for name in _BOUNDS:
        columns[name] = [_short(getattr(task, name)) for task in tasks]
    return columns


def _index(index: int | str) -> int | str:
    if isinstance(index, str):
        return clean(index, NAME_LENGTH)
    return index if abs(index) < _EXACT else str(index)


def _labels(tasks: Sequence[TaskInsight]) -> list[str | None] | None:
    """Return the labels; None when no task has one."""
    labels = [
        None if task.label is None else clean(task.label, LABEL_LENGTH)
        for task in tasks
    ]
    return labels if any(labels) else None


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, _BOUND_DIGITS)


def _numbers(values: Iterable[float | None]) -> list[float | int | None]:
    """Return numbers with nine digits; None for what is unknown or not finite."""
    return [
        None if value is None or not math.isfinite(value) else _rounded(value)
        for value in values
    ]


def _rounded(value: float) -> float | int:
    short = float(f"{value:.{_DIGITS}g}")
    # Whole numbers without their ".0", which pack better.
    return int(short) if short == int(short) and abs(short) < 1e15 else short  # noqa: PLR2004


def rollout_columns(insights: Insights) -> dict[str, Any] | None:
    """Return all tasks' rollouts one after another, in columns; None where not known.

    `size[t]` is how many of them belong to task t.
    """
    if not insights.has_rollouts:
        return None
    parts = [task.rollouts or _NO_ROLLOUTS for task in insights.tasks]
    return {
        "size": [len(part.state) for part in parts],
        "rollout_index": _indices(parts),
        "state": "".join(
            _STATE_LETTERS[state] for part in parts for state in part.state
        ),
        "reward": _numbers(value for part in parts for value in part.reward),
        "output_tokens": _numbers(
            value for part in parts for value in part.output_tokens
        ),
        "is_truncated": "".join(
            _FLAG_LETTERS[flag] for part in parts for flag in part.is_truncated
        ),
        "is_empty": "".join(
            _FLAG_LETTERS[flag] for part in parts for flag in part.is_empty
        ),
        "attempts": [value for part in parts for value in part.attempts],
    }


_NO_ROLLOUTS = RolloutNumbers(
    rollout_index=(), state=(), reward=(), output_tokens=(), is_truncated=(),
    is_empty=(), attempts=(),
)  # fmt: skip


def _indices(parts: Sequence[RolloutNumbers]) -> list[int | str] | None:
    """Return the rollout indices; None where each task counts them from 0."""
    if all(part.rollout_index == tuple(range(len(part.state))) for part in parts):
        return None
    return [_index(index) for part in parts for index in part.rollout_index]
