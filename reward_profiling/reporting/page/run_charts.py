"""Plots of the run: length, coverage, completion over time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.coverage import Coverage
from reward_profiling.insights.section import Section
from reward_profiling.insights.task_insights import TaskInsight
from reward_profiling.numerics.figures import measured
from reward_profiling.reporting.page.cloud import (
    MOST_POINTS,
    Point,
    has_long_tail,
    thinned,
)
from reward_profiling.reporting.page.parts import Chart, TextTable
from reward_profiling.reporting.page.words import count, finite, number, of, signed

STATES = ("scored", "unscored", "masked", "failed", "missing")
_STATE_WORDS = {
    "scored": "scored",
    "unscored": "without a usable reward",
    "masked": "masked by the server",
    "failed": "failed",
    "missing": "missing",
}
MOST_AGENTS = 20
"""Agents that the plot of coverage draws, those that lack most first."""
_TABLE_ROWS = 200
_LENGTH_PARTS = 8
_UNITS = (
    (120.0, 1.0, "seconds"),
    (7200.0, 60.0, "minutes"),
    (math.inf, 3600.0, "hours"),
)


def reward_against_length(insights: Insights) -> Chart | str:
    """Reward of each rollout against its output tokens; or why not."""
    points = _length_points(insights)
    if not points or not _fits([point.y for point in points]):
        return "Reward against length: no scored rollout has a count of output tokens."
    is_log = has_long_tail([point.x for point in points])
    drawn = thinned(points, is_log=is_log)
    parts = _parts(points)
    return Chart(
        name="length",
        title=_length_title(insights),
        caption=_length_caption(insights, len(points)),
        axes="Across: output tokens. Up: reward.",
        data={
            "points": [list(point) for point in drawn],
            "parts": [list(_middle(part)) for part in parts],
            "is_log": is_log,
        },
        table=_length_parts(parts, "rollouts" if insights.has_rollouts else "tasks"),
        legend=(("sometimes", "finished"), ("never", "cut off"))
        if any(point.kind for point in points)
        else (),
        is_wide=True,
    )


def _length_caption(insights: Insights, num_points: int) -> str:
    caption = (
        "Each scored rollout with a count of output tokens"
        if insights.has_rollouts
        else "Each task at its means, because the insights of so large a run do not"
        " list rollouts"
    )
    if num_points > MOST_POINTS:
        caption += "; a larger mark stands for several points"
    unknown = insights.run.coverage.collected - insights.run.length.num_truncation_known
    if unknown > 0:
        caption += f". {count(unknown, 'record')} do not say whether they were cut off"
    return f"{caption}. The line is the mean reward of equally large parts by length."


def _length_points(insights: Insights) -> list[Point]:
    points = (
        point
        for task in insights.tasks
        for point in (_rollouts(task) if insights.has_rollouts else _task(task))
    )
    return [
        point for point in points if math.isfinite(point.x) and math.isfinite(point.y)
    ]


def _rollouts(task: TaskInsight) -> Iterator[Point]:
    if task.rollouts is None:
        return
    columns = task.rollouts
    for tokens, reward, cut in zip(
        columns.output_tokens, columns.reward, columns.is_truncated, strict=True
    ):
        if tokens is not None and reward is not None:
            yield Point(tokens, reward, int(cut is True))


def _task(task: TaskInsight) -> Iterator[Point]:
    if task.mean_tokens is not None and task.mean is not None:
        yield Point(task.mean_tokens, task.mean, 0)


def _fits(values: Sequence[float]) -> bool:
    return math.isfinite(max(values) - min(values))


def _length_title(insights: Insights) -> str:
    length = insights.run.length
    found = length.correlation
    if found.spearman is None:
        said = "No correlation of reward and length: one of them never varies"
    else:
        said = (
            f"Rank correlation of reward and output tokens {signed(found.spearman)},"
            f" within tasks {signed(found.within_spearman)}"
        )
    said += f" (n = {count(found.num_rollouts, 'rollout')})"
    if length.num_truncated:
        said += (
            f"; {of(length.num_truncated, length.num_truncation_known)} were cut off"
        )
    return said


def _length_parts(parts: Sequence[Sequence[Point]], noun: str) -> TextTable:
    """Return equal parts of the points by length, the shortest first."""
    return TextTable(
        ("output tokens", noun, "mean reward", "cut off"),
        tuple(
            (
                f"{number(part[0].x)} to {number(part[-1].x)}",
                f"{len(part):,}",
                number(_middle(part)[1]),
                f"{sum(point.kind for point in part):,}",
            )
            for part in parts
        ),
        "Equally large parts by length.",
    )


def _parts(points: Sequence[Point]) -> list[list[Point]]:
    """Return equal parts of the points by length, the shortest first."""
    ordered = sorted(points)
    size = max(math.ceil(len(ordered) / _LENGTH_PARTS), 1)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def _middle(part: Sequence[Point]) -> tuple[float, float]:
    """Return the median length and the mean reward of some points."""
    return part[len(part) // 2].x, math.fsum(point.y / len(part) for point in part)


def states(coverage: Coverage) -> list[int]:
    """Return how many rollouts are in each of `STATES`; they add up to the plan."""
    return [
        coverage.scored, coverage.unscored, coverage.masked,
        coverage.failed, coverage.missing,
    ]  # fmt: skip


def coverage_by_agent(insights: Insights, names: Mapping[str, str]) -> Chart | str:
    """What became of each agent's planned rollouts, stacked; or why not."""
    if not insights.run.coverage.planned:
        return "Coverage: nothing was planned."
    agents = sorted(insights.agents, key=_lacking)
    drawn = agents[:MOST_AGENTS]
    present = [
        index for index in range(len(STATES)) if states(insights.run.coverage)[index]
    ]
    caption = "Each bar shows the rollouts planned for an agent."
    if len(agents) > len(drawn):
        caption += f" Shown: the {len(drawn)} of {len(agents):,} agents that lack most."
    return Chart(
        name="coverage",
        title=_coverage_title(insights.run.coverage, agents, names),
        caption=caption,
        axes="Across: share of the planned rollouts. Down: agents.",
        data={
            "agents": [
                [names[agent.agent or ""], *states(agent.coverage)] for agent in drawn
            ]
        },
        table=TextTable(
            ("agent", "planned", *(_STATE_WORDS[name] for name in STATES)),
            tuple(
                (
                    names[agent.agent or ""],
                    f"{agent.coverage.planned:,}",
                    *(f"{amount:,}" for amount in states(agent.coverage)),
                )
                for agent in agents[:_TABLE_ROWS]
            ),
            _rest(len(agents), _TABLE_ROWS),
        ),
        legend=tuple((STATES[index], _STATE_WORDS[STATES[index]]) for index in present),
    )


def _lacking(section: Section) -> tuple[float, str]:
    planned = section.coverage.planned
    return (section.coverage.scored / planned if planned else 1.0, section.agent or "")


def _coverage_title(
    run: Coverage, agents: Sequence[Section], names: Mapping[str, str]
) -> str:
    if run.scored == run.planned:
        all_of = "All" if run.planned > 1 else "The only"
        verb = "are" if run.planned > 1 else "is"
        rollouts = count(run.planned, "planned rollout").removeprefix("1 ")
        return f"{all_of} {rollouts} {verb} scored"
    said = f"{of(run.scored, run.planned)} planned rollouts are scored"
    worst = agents[0]
    if len(agents) > 1:
        said += (
            f"; {names[worst.agent or '']} lacks most:"
            f" {of(worst.coverage.scored, worst.coverage.planned)}"
        )
    return said


def _rest(present: int, shown: int) -> str:
    return f"The first {shown:,} of {present:,}." if present > shown else ""


class _Unit(NamedTuple):
    seconds: float
    name: str


def _unit(longest: float) -> _Unit:
    return next(_Unit(size, name) for bound, size, name in _UNITS if longest < bound)


def completion(insights: Insights) -> Chart | str:
    """How many rollouts had finished by when; or why it is unknown."""
    points = [
        point for point in insights.completion if finite(point.seconds) is not None
    ]
    if not points:
        return "Completion over time: no timings are known."
    last = points[-1]
    unit = _unit(last.seconds)
    is_several = last.finished > 1
    half = next(point for point in points if 2 * point.finished >= last.finished)
    middle = measured(half.seconds / unit.seconds)
    return Chart(
        name="completion",
        title=f"{count(last.finished, 'rollout')} finished within"
        f" {measured(last.seconds / unit.seconds)} {unit.name}"
        + (f", half of them after {middle}" * is_several),
        caption="How long collecting took, over all runs of this output.",
        axes=f"Across: {unit.name} since the first rollout started. Up: rollouts"
        " finished.",
        data={
            "points": [
                [point.seconds / unit.seconds, point.finished] for point in points
            ],
            "unit": unit.name,
        },
        table=TextTable(
            (unit.name, "rollouts finished"),
            tuple(
                (number(point.seconds / unit.seconds), f"{point.finished:,}")
                for point in points[:: max(len(points) // 10, 1)]
            ),
        ),
        is_wide=True,
    )
