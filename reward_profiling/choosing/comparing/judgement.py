"""The verdict on a candidate: PASS, REGRESSED or INCONCLUSIVE, and its sentence."""

from collections.abc import Sequence

from reward_profiling.choosing.comparison import (
    CompareOptions,
    Comparison,
    Difference,
    Judgement,
)
from reward_profiling.numerics.figures import figure, setting, signed_figure
from reward_profiling.numerics.uncertainty import Interval
from reward_profiling.profiling.finding import Finding

_WORST_FIRST: tuple[Judgement, ...] = ("REGRESSED", "INCONCLUSIVE", "PASS")


def judge(interval: Interval | None, margin: float) -> Judgement:
    """Judge the interval of a difference by how much worse is allowed, `margin` >= 0.

    PASS needs all of it above -margin, REGRESSED all of it below. Without an interval
    the verdict is INCONCLUSIVE.
    """
    if interval is None:
        return "INCONCLUSIVE"
    if interval.low >= -margin:
        return "PASS"
    return "REGRESSED" if interval.high < -margin else "INCONCLUSIVE"


def judgement_of(
    overall: Difference, agents: Sequence[Difference], options: CompareOptions
) -> Judgement | None:
    """Return the verdict over all tasks, or the worst of it and the agents'.

    The options say which; None where nothing was judged, for lack of a bound.
    """
    judged = [overall, *agents] if options.every_agent else [overall]
    verdicts = {one.judgement for one in judged}
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)


def finding_of(comparison: Comparison) -> Finding | None:
    """Return a comparison's verdict as a finding; None for a pass or no verdict.

    "regressed" is critical, "comparison_inconclusive" a warning.
    """
    overall = comparison.overall
    if comparison.judgement not in {"REGRESSED", "INCONCLUSIVE"}:
        return None
    is_regressed = comparison.judgement == "REGRESSED"
    return Finding(
        name="regressed" if is_regressed else "comparison_inconclusive",
        severity="critical" if is_regressed else "warning",
        agent=None,
        sentence=judgement_in_words(comparison),
        evidence={
            "difference": overall.difference,
            "low": overall.interval.low if overall.interval else None,
            "high": overall.interval.high if overall.interval else None,
            "tasks": overall.num_tasks,
            "max_regression": comparison.max_regression,
        },
        remedy=(
            "look at the flipped tasks in the comparison file"
            if is_regressed
            else "add tasks or repeats; the comparison says how many tasks are needed"
        ),
    )


def judgement_in_words(comparison: Comparison) -> str:
    """Return the verdict as a sentence, with its numbers and their n."""
    overall = comparison.overall
    said = (
        f"{comparison.measure} {figure(overall.baseline_mean)} before and"
        f" {figure(overall.candidate_mean)} now: {signed_figure(overall.difference)}"
    )
    if overall.interval is not None:
        low, high = overall.interval.low, overall.interval.high
        said += f", 95 % interval {signed_figure(low)} to {signed_figure(high)}"
    said += f" (n={overall.num_tasks} paired task" + "s" * (overall.num_tasks != 1)
    if comparison.max_regression is not None:
        said += f"; at most {setting(comparison.max_regression)} worse is allowed"
    return said + ")"
