"""Plots of what more tries, and groups of them, would give."""

from collections.abc import Sequence

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.learning_signal import UsefulGroups
from reward_profiling.reporting.page.parts import Chart, TextTable
from reward_profiling.reporting.page.words import (
    count,
    share,
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
