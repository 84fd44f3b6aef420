"""Insights in a few lines of plain words; every number with its n."""

from collections.abc import Iterator

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.learning_signal import Signal
from reward_profiling.insights.measures.length import Length
from reward_profiling.insights.measures.passing import Passing
from reward_profiling.insights.measures.reward import RewardEstimate
from reward_profiling.numerics.figures import (
    correlation,
    figure,
    is_residue,
    percent,
    setting,
)

_TRIES = (2, 4, 8, 16, 32, 64)


def insights_in_words(insights: Insights) -> list[tuple[str, str]]:
    """Return the headline numbers of a run, each as (what, sentence)."""
    run = insights.run
    if run.reward.macro_mean is None:
        return [("mean reward", "unknown: no rollout has a reward")]
    return [
        ("mean reward", mean_in_words(run.reward)),
        ("passing", _passing(run.passing, insights.reading.pass_threshold)),
        ("signal", _signal(run.signal)),
        *_groups(run.signal),
        *_length(run.length),
    ]


def mean_in_words(reward: RewardEstimate) -> str:
    """Return a mean with its precision, or with the reason why that is unknown."""
    tasks = _count(reward.num_tasks, "task")
    mean = reward.macro_mean
    said = f"{'unknown' if mean is None else figure(mean)} (n={tasks})"
    if reward.interval is not None:
        low, high = reward.interval.low, reward.interval.high
        said += f", 95 % interval {figure(low)} to {figure(high)}"
    if reward.caution:
        said += f"; {reward.caution}"
    rerun = reward.rerun_standard_error
    if rerun is not None and not is_residue(rerun, mean or 0.0):
        error = figure(rerun)
        said += f"; running the same tasks again would move it by ± {error}"
    if reward.mean_failures_as_zero not in {None, reward.macro_mean}:
        said += (
            f"; {figure(reward.mean_failures_as_zero)} with failures as 0"
            f" (n={_count(reward.num_tasks_failures_as_zero, 'task')})"
        )
    return said


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


def _passing(passing: Passing, threshold: float) -> str:
    said = (
        f"{percent(passing.pass_rate or 0.0)} reach {setting(threshold)}"
        f" (n={_count(passing.num_tasks, 'task')})"
    )
    points = {point.k: point for point in passing.curve}
    told = [points[k] for k in _TRIES if k in points]
    if told:
        tries = ", ".join(
            f"{point.k}: {percent(point.pass_at_k)} (n={point.num_tasks})"
            for point in told
        )
        said += f"; at least one of {tries}"
        last = told[-1]
        said += f"; all of {last.k}: {percent(last.pass_hat_k)} (n={last.num_tasks})"
    if passing.majority is not None:
        found = passing.majority
        said += (
            f"; the most common answer {percent(found.pass_rate)}"
            f" (n={_count(found.num_tasks, 'task')})"
        )
    return said


def _signal(signal: Signal) -> str:
    told = signal.num_signal + signal.num_zero_signal
    said = (
        f"rewards differ in {signal.num_signal} of {_count(told, 'task')};"
        f" {signal.never} never pass, {signal.sometimes} sometimes,"
        f" {signal.always} always"
    )
    if signal.undetermined:
        said += f", {signal.undetermined} undetermined"
    if signal.never_upper_bound is not None:
        said += (
            f". A task that failed all {signal.never_rollouts} may still pass up to"
            f" {percent(signal.never_upper_bound)} of the time"
        )
    return said


def _groups(signal: Signal) -> Iterator[tuple[str, str]]:
    """Say which share of groups would teach, and which shares are guesses."""
    sure = [g for g in signal.groups if g.useful_share is not None]
    guessed = [
        g
        for g in signal.groups
        if g.useful_share is None and g.plug_in_useful_share is not None
    ]
    parts = [
        f"of {g.group_size}: {percent(g.useful_share or 0.0)} (n={g.num_tasks})"
        for g in sure
    ]
    if guessed:
        listed = ", ".join(
            f"of {g.group_size}: {percent(g.plug_in_useful_share or 0.0)}"
            for g in guessed
        )
        parts.append(f"estimated from fewer repeats {listed}")
    if parts:
        yield "useful groups", "; ".join(parts)


def _length(length: Length) -> Iterator[tuple[str, str]]:
    parts = []
    if length.mean_tokens is not None:
        parts.append(
            f"median {length.median_tokens:,.0f} tokens, 95th percentile"
            f" {length.p95_tokens:,.0f} (n={length.num_with_tokens:,})"
        )
    if length.num_truncation_known:
        known = length.num_truncation_known
        parts.append(f"{length.num_truncated} of {known:,} cut off")
    if length.num_empty_known:
        parts.append(_empty(length))
    found = length.correlation
    if found.within_spearman is not None:
        parts.append(
            f"rank correlation with reward {correlation(found.within_spearman)}"
            f" within tasks (n={found.num_rollouts:,})"
        )
    if parts:
        yield "length", "; ".join(parts)


def _empty(length: Length) -> str:
    said = f"{length.num_empty} of {length.num_empty_known:,} empty"
    if length.num_only_thought:
        said += f", {length.num_only_thought} of them only thinking"
    unknown = length.num_records - length.num_empty_known
    return (
        f"{said} ({unknown:,} of {length.num_records:,} unknown)" if unknown else said
    )
