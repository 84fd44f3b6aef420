"""What a tracker of runs is told of a profile: numbers by name, settings, no rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from reward_profiling.insights.document import Insights
from reward_profiling.insights.section import Section
from reward_profiling.profiling.finding import SEVERITIES

Number = int | float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One profile, as trackers take it."""

    name: str
    """Name of the run."""

    project: str
    """What it is filed under."""

    settings: dict[str, str]
    """How rewards were read, and of which model."""

    metrics: dict[str, Number]
    """Numbers by name; unknown ones are left out."""

    files: tuple[str, ...]
    """Files that are logged with it."""


def tracked_run(
    insights: Insights, files: tuple[str, ...], project: str, name: str | None = None
) -> TrackedRun:
    """Return what a tracker is told; the run is called as its output, by default."""
    reading = msgspec.structs.asdict(insights.reading)
    told = {"output": insights.output, "model": insights.model, **reading}
    return TrackedRun(
        name=name or insights.output.removesuffix(".jsonl"),
        project=project,
        settings={key: str(value) for key, value in told.items() if value is not None},
        metrics=dict(_metrics(insights)),
        files=files,
    )


def _metrics(insights: Insights) -> Iterator[tuple[str, Number]]:
    for section in (insights.run, *insights.agents):
        prefix = "" if section.agent is None else f"{section.agent}/"
        for key, value in _section(section):
            if value is not None:
                yield prefix + key, value
    for severity in SEVERITIES:
        count = sum(found.severity == severity for found in insights.findings)
        yield f"findings/{severity}", count


def _section(section: Section) -> Iterator[tuple[str, Number | None]]:
    reward, signal, length = section.reward, section.signal, section.length
    yield "reward/macro_mean", reward.macro_mean
    yield "reward/standard_error", reward.standard_error
    yield "reward/rerun_standard_error", reward.rerun_standard_error
    if reward.interval is not None:
        yield "reward/low", reward.interval.low
        yield "reward/high", reward.interval.high
    yield "reward/micro_mean", reward.micro_mean
    yield "reward/mean_failures_as_zero", reward.mean_failures_as_zero
    for point in section.passing.curve:
        yield f"pass_at/{point.k}", point.pass_at_k
        yield f"pass_hat/{point.k}", point.pass_hat_k
    for name in ("never", "sometimes", "always", "undetermined"):
        yield f"tasks/{name}", getattr(signal, name)
    yield "signal/zero_signal_share", signal.zero_signal_share
    for group in signal.groups:
        yield f"signal/useful_share/{group.group_size}", group.useful_share
    for name in ("planned", "scored", "unscored", "masked", "failed", "missing"):
        yield f"rollouts/{name}", getattr(section.coverage, name)
    yield "length/mean_tokens", length.mean_tokens
    if length.num_truncation_known:
        share = length.num_truncated / length.num_truncation_known
        yield "length/truncated_share", share
    if length.num_empty_known:
        yield "length/empty_share", length.num_empty / length.num_empty_known
