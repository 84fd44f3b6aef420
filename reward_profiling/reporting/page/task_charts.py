"""Plots of rewards and passing, made of the tasks."""

import math
from collections import Counter
from collections.abc import Sequence

from reward_profiling.insights.document import Insights
from reward_profiling.insights.task_insights import TaskInsight
from reward_profiling.reporting.page.histogram import bar_of, bars
from reward_profiling.reporting.page.parts import Chart, TextTable
from reward_profiling.reporting.page.words import (
    NAME_LENGTH,
    clean,
    count,
    finite,
    interval,
    number,
    of,
    share,
)

CLASSES = ("never", "sometimes", "always", "undetermined")
_CLASS_WORDS = {
    "never": "never passed",
    "sometimes": "passed sometimes",
    "always": "always passed",
    "undetermined": "undetermined: fewer than two scored rollouts",
}
_LEGEND = tuple((name, _CLASS_WORDS[name]) for name in CLASSES)
MOST_TASKS = 240
"""Tasks that the plot of pass rates draws one by one."""
_QUANTILES = 10


def task_means(insights: Insights) -> Chart | str:
    """Histogram of the tasks' mean rewards, by class; or why there is none."""
    tasks = [task for task in insights.tasks if finite(task.mean) is not None]
    means = sorted(task.mean or 0.0 for task in tasks)
    edges = bars(means, _usual_repeats(tasks))
    if not edges:
        return "Task means: no task has a mean reward that can be drawn."
    counts = [dict.fromkeys(CLASSES, 0) for _ in edges]
    for task in tasks:
        counts[bar_of(task.mean or 0.0, edges)][task.task_class] += 1
    filled = [
        (edge, tally)
        for edge, tally in zip(edges, counts, strict=True)
        if any(tally.values())
    ]
    reward = insights.run.reward
    return Chart(
        name="histogram",
        title=_means_title(means),
        caption="Each task counts once, at the mean reward of its scored rollouts. The"
        " line is the mean over tasks; the shaded band is its interval, if known."
        + _left_out(len(insights.tasks) - len(tasks), "task", "no scored rollout"),
        axes="Across: mean reward of a task. Up: number of tasks.",
        data={
            "bars": [
                [left, right, *(tally[name] for name in CLASSES)]
                for (left, right), tally in filled
            ],
            "mean": finite(reward.macro_mean),
            "interval": reward.interval and [reward.interval.low, reward.interval.high],
        },
        table=TextTable(
            ("mean reward", "tasks", *CLASSES),
            tuple(
                (
                    f"{number(left)} to {number(right)}",
                    str(sum(tally.values())),
                    *(str(tally[name]) for name in CLASSES),
                )
                for (left, right), tally in filled
            ),
        ),
        legend=_used(tasks),
    )


def _usual_repeats(tasks: Sequence[TaskInsight]) -> int:
    """Return the most common number of scored rollouts per task; 0 for no task."""
    amounts = Counter(task.scored for task in tasks)
    return max(amounts, key=lambda amount: (amounts[amount], amount), default=0)


def _means_title(means: Sequence[float]) -> str:
    low, high, middle = means[0], means[-1], means[len(means) // 2]
    if len(means) == 1:
        return f"The only scored task has a mean reward of {number(low)}"
    if high - low <= 1e-9 * max(abs(low), 1.0):
        return (
            f"All {count(len(means), 'task')} have the same mean reward: {number(low)}"
        )
    return (
        f"Task means range from {number(low)} to {number(high)}; half of"
        f" {count(len(means), 'task')} reach {number(middle)}"
    )


def _used(tasks: Sequence[TaskInsight]) -> tuple[tuple[str, str], ...]:
    present = {task.task_class for task in tasks}
    return tuple(pair for pair in _LEGEND if pair[0] in present)


def _left_out(number_of: int, noun: str, why: str) -> str:
    if not number_of:
        return ""
    return f" Not shown: {count(number_of, noun)} with {why}."


def task_pass_rates(insights: Insights) -> Chart | str:
    """Pass rates of tasks in order of size, with their intervals; or why not."""
    tasks = [task for task in insights.tasks if task.pass_rate is not None]
    if not tasks:
        return "Pass rates: no task has a scored rollout."
    tasks.sort(key=lambda task: (task.pass_rate or 0.0, task.scored))
    signal = insights.run.signal
    parts = [
        f"{amount:,} {word}"
        for amount, word in (
            (signal.never, "never"),
            (signal.sometimes, "sometimes"),
            (signal.always, "always"),
        )
    ]
    each = len(tasks) <= MOST_TASKS
    caption = (
        "Tasks from the lowest pass rate to the highest; the bar is the"
        f" {share(insights.reading.confidence)} interval (Wilson) of each."
        if each
        else "Tasks from the lowest pass rate to the highest, several per point; the"
        " shaded band is their average interval (Wilson)."
    )
    lacking = _left_out(len(insights.tasks) - len(tasks), "task", "no scored rollout")
    return Chart(
        name="pass_rates",
        title=f"Of {count(len(insights.tasks), 'task')}, {', '.join(parts)} passed"
        + (f"; {signal.undetermined:,} undetermined" if signal.undetermined else ""),
        caption=caption + lacking,
        axes="Across: tasks, in order of pass rate. Up: pass rate.",
        data={"tasks": _each(tasks) if each else _many(tasks), "is_each": each},
        table=_quantiles(tasks),
        legend=_used(tasks),
        is_wide=True,
    )


def _each(tasks: Sequence[TaskInsight]) -> list[list[object]]:
    return [
        [
            position,
            task.pass_rate,
            task.interval and task.interval.low,
            task.interval and task.interval.high,
            CLASSES.index(task.task_class),
            _passed_in_words(task),
        ]
        for position, task in enumerate(tasks, start=1)
    ]


def _passed_in_words(task: TaskInsight) -> str:
    name = clean(str(task.task_index), NAME_LENGTH)
    return f"task {name}: {task.passed} of {task.scored} passed"


def _many(tasks: Sequence[TaskInsight]) -> list[list[object]]:
    """Return a row for each of `MOST_TASKS` parts of the sorted tasks."""
    size = math.ceil(len(tasks) / MOST_TASKS)
    rows: list[list[object]] = []
    for start in range(0, len(tasks), size):
        part = tasks[start : start + size]
        first = start + 1
        rates = [task.pass_rate or 0.0 for task in part]
        bounds = [task.interval for task in part if task.interval is not None]
        rate = sum(rates) / len(rates)
        rows.append([
            first + (len(part) - 1) / 2,
            rate,
            sum(bound.low for bound in bounds) / len(bounds) if bounds else None,
            sum(bound.high for bound in bounds) / len(bounds) if bounds else None,
            0 if rate == 0 else 2 if rate == 1 else 1,
            f"tasks {first:,} to {first + len(part) - 1:,}: {share(rate)} on average",
        ])  # fmt: skip
    return rows


def _quantiles(tasks: Sequence[TaskInsight]) -> TextTable:
    """Return the tasks at every tenth of the order, lowest pass rate first."""
    last = len(tasks) - 1
    steps = range(_QUANTILES + 1) if last else range(1)
    chosen = dict.fromkeys(round(step * last / _QUANTILES) for step in steps)
    return TextTable(
        ("place in order", "pass rate", "passed of scored", "interval"),
        tuple(
            (
                of(place + 1, len(tasks)),
                share(tasks[place].pass_rate),
                of(tasks[place].passed, tasks[place].scored),
                interval(tasks[place].interval),
            )
            for place in chosen
        ),
        "Every tenth of the order; the table of tasks lists all tasks.",
    )
