"""Plots of rewards and passing, made of the tasks."""

import math
from collections import Counter
from collections.abc import Sequence

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.learning_signal import UsefulGroups
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


def pass_curve(insights: Insights) -> Chart | str:
    """Return pass@k and pass^k by k, or the reason why there are none."""
    curve = insights.run.passing.curve
    if not curve:
        return "pass@k and pass^k: no task has a scored rollout."
    last = curve[-1]
    tries = count(last.k, "try").replace("trys", "tries")
    title = (
        f"With {tries}, {share(last.pass_at_k)} of tasks pass at least once,"
        f" {share(last.pass_hat_k)} every time (n = {count(last.num_tasks, 'task')})"
        if last.k > 1
        else f"One try passes for {share(last.pass_at_k)} of tasks"
        f" (n = {count(last.num_tasks, 'task')}); more repeats would show more"
    )
    changing = len({point.num_tasks for point in curve}) > 1
    return Chart(
        name="pass_curve",
        title=title,
        caption="Unbiased estimates; the shaded band is one standard error over tasks."
        + (
            " Each k covers the tasks with at least k scored rollouts: their number n"
            " is below the axis."
            if changing
            else ""
        ),
        axes="Across: number of tries, k. Up: share of tasks.",
        data={
            "points": [
                [
                    point.k, point.pass_at_k, point.pass_at_k_error,
                    point.pass_hat_k, point.pass_hat_k_error, point.num_tasks,
                ]
                for point in curve
            ],
        },
        table=TextTable(
            ("k", "pass@k", "± standard error", "pass^k", "± standard error", "tasks"),
            tuple(
                (
                    str(point.k),
                    share(point.pass_at_k),
                    error(point.pass_at_k_error),
                    share(point.pass_hat_k),
                    error(point.pass_hat_k_error),
                    f"{point.num_tasks:,}",
                )
                for point in curve
            ),
        ),
        legend=(
            ("sometimes", "pass@k: at least one of k passes"),
            ("never", "pass^k: all k pass"),
        ),
    )  # fmt: skip


def error(value: float | None) -> str:
    """Return the standard error of a share; "unknown" for None and for 0."""
    return share(value) if value else "unknown"


def useful_groups(insights: Insights) -> Chart | str:
    """Share of groups that would teach, by size; or why it is unknown."""
    groups = [group for group in insights.run.signal.groups if _shown(group)]
    if not groups:
        return "Useful groups: no task has two scored rollouts."
    is_same = all(
        group.useful_share == group.mixed_share
        and group.plug_in_useful_share == group.plug_in_mixed_share
        for group in groups
    )
    differ, mixed = ("sometimes", "rewards differ"), ("never", "passes and misses")
    caption = (
        "Of groups of a task's rollouts: those whose rewards differ, which are those"
        " with both passes and misses."
        if is_same
        else "Of groups of a task's rollouts: those whose rewards differ, and those"
        " with both passes and misses."
    )
    if any(group.useful_share is None for group in groups):
        caption += (
            " Hollow points: no task has that many rollouts, so the share is estimated"
            " from observed frequencies."
        )
    return Chart(
        name="groups",
        title=_groups_title(groups),
        caption=caption,
        axes="Across: group size. Up: expected share of groups.",
        data={
            "groups": [
                [
                    group.group_size, group.useful_share,
                    None if is_same else group.mixed_share,
                    group.num_tasks, group.plug_in_useful_share,
                    None if is_same else group.plug_in_mixed_share,
                    group.num_plug_in_tasks,
                ]
                for group in groups
            ],
        },
        table=_groups_table(groups),
        legend=(differ,) if is_same else (differ, mixed),
    )  # fmt: skip


def _groups_table(groups: Sequence[UsefulGroups]) -> TextTable:
    return TextTable(
        ("group size", "rewards differ", "passes and misses", "tasks",
         "differ, by frequencies", "both, by frequencies", "tasks"),
        tuple(
            (
                str(group.group_size),
                share(group.useful_share),
                share(group.mixed_share),
                f"{group.num_tasks:,}",
                share(group.plug_in_useful_share),
                share(group.plug_in_mixed_share),
                f"{group.num_plug_in_tasks:,}",
            )
            for group in groups
        ),
    )  # fmt: skip


def _shown(group: UsefulGroups) -> bool:
    return group.useful_share is not None or group.plug_in_useful_share is not None


def _groups_title(groups: Sequence[UsefulGroups]) -> str:
    known = [group for group in groups if group.useful_share is not None]
    if known:
        best = known[-1]
        return (
            f"{share(best.useful_share)} of groups of {best.group_size} would teach"
            f" (n = {count(best.num_tasks, 'task')} with {best.group_size} rollouts or"
            " more)"
        )
    first = groups[0]
    return (
        f"About {share(first.plug_in_useful_share)} of groups of {first.group_size}"
        f" would teach, estimated from fewer rollouts (n ="
        f" {count(first.num_plug_in_tasks, 'task')})"
    )
