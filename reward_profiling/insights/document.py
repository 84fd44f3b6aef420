"""Insights: the schema of `<stem>_insights.json`, with its version.

The file is one JSON object, an `Insights`. The report and the terminal read nothing
else. The unit of statistics is a (task, agent) pair: a task that is fanned out to
several agents counts once for each. Rates are fractions 0..1; unknown is null, never 0;
every mean and every rate has its count beside it. The same records give the same file,
in whatever order their lines are.

Adding a field keeps the version; removing or renaming one, or changing its meaning,
raises it.

The insights are derived from the table alone, in time linear in the rollouts. Short
lists (agents, metrics, findings) are built at once; the tasks come one by one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.checks.check_list import check_health
from reward_profiling.insights.completion_curve import CompletionPoint
from reward_profiling.insights.interpretation import interpret
from reward_profiling.insights.metric_summaries import MetricSummary, summarize_metrics
from reward_profiling.insights.section import Section, section_of
from reward_profiling.insights.task_insights import TaskInsight, task_insights
from reward_profiling.insights.units import Unit, units_of
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.passes import PASS_TOLERANCE
from reward_profiling.profiling.rollout_table import RolloutTable

SCHEMA_VERSION = 1

MOST_ROLLOUTS = 1_000_000
"""With more rollouts than this, the file does not list them one by one."""


class ReadingSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How rewards were read: the settings behind every number of the file."""

    pass_threshold: float
    """A rollout passes when its reward is at least this."""

    pass_tolerance: float
    """How far below the threshold a reward may lie, for rounding."""

    signal_tolerance: float
    """Rewards that differ by no more than this are the same."""

    leave_out_empty: bool = False
    """Whether records without an answer count as masked, so that no mean has them."""

    confidence: float = 0.95
    """Confidence of every interval, and of the one-sided bounds."""

    degrees_lost: int = 1
    """What standard deviations divide by less than n (ddof)."""

    clusters: str = "task"
    """What standard errors of means over rollouts are clustered by; the variance is
    multiplied by C/(C - 1), where C is the number of clusters."""

    failures_as_zero: bool = False
    """Whether headline means count a failed rollout as 0; `mean_failures_as_zero`
    gives the other denominator beside each."""

    answer_field: str | None = None
    """The field of the record that holds the answer, for the majority; None if no
    field was given."""


class Insights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    schema_version: int = SCHEMA_VERSION
    """Version of this schema."""

    made_by: str = ""
    """Name and version of the program that wrote it."""

    output: str = ""
    """Name of the rollouts file."""

    model: str | None = None
    """Name of the model that made the rollouts, if the servers reported it."""

    reading: ReadingSettings
    """How rewards were read."""

    run: Section
    """The run as a whole."""

    agents: tuple[Section, ...]
    """One for each agent, in order of name."""

    findings: tuple[Finding, ...]
    """The worst first."""

    metrics: tuple[MetricSummary, ...]
    """Other numeric columns; identifiers last."""

    has_rollouts: bool
    """Whether each task lists its rollouts. Above 1,000,000 rollouts it does not; the
    rollouts file and the parquet file hold them."""

    completion: tuple[CompletionPoint, ...] = ()
    """At most 200 points in order of time; empty where no timings are known."""

    replies_lost: int | None = None
    """Requests whose reply was lost, over all runs: so many rollouts possibly ran
    twice. None where no timings are known."""

    tasks: tuple[TaskInsight, ...]
    """One for each (task, agent), in key order, then by agent."""


class Derivation(NamedTuple):
    """The insights of one table."""

    head: Insights
    """Everything but the tasks."""
    tasks: Iterator[TaskInsight]
    """Each (task, agent), in key order, then by agent."""


def derive_insights(
    table: RolloutTable,
    options: ProfileOptions,
    answers: Sequence[int] | None = None,
) -> Insights:
    """Return the complete insights of a run; for `answers` see `derive`."""
    head, tasks = derive(table, options, answers)
    return msgspec.structs.replace(head, tasks=tuple(tasks))


def derive(
    table: RolloutTable,
    options: ProfileOptions,
    answers: Sequence[int] | None = None,
) -> Derivation:
    """Return the insights of a run: the head at once, the tasks one by one.

    `answers[row]` is a digest of the extracted answer, 0 if a record has none; None if
    no answer field is given.
    """
    table = interpret(table, options)
    units = units_of(table, options)
    has_rollouts = len(table) <= MOST_ROLLOUTS

    def section(agent: str | None, its: Sequence[Unit]) -> Section:
        return section_of(agent, table, its, options, answers)

    parts = [
        AgentPart(table, its, section(table.agents[agent], its), options)
        for agent, its in sorted(_by_agent(units).items())
    ]
    if len(parts) == 1:  # the only agent's numbers are the run's
        run = msgspec.structs.replace(parts[0].section, agent=None)
    else:
        run = section(None, units)
    metrics = summarize_metrics(table, units)
    head = Insights(
        reading=_settings(options),
        run=run,
        agents=tuple(part.section for part in parts),
        findings=check_health(parts, metrics),
        metrics=metrics,
        has_rollouts=has_rollouts,
        tasks=(),
    )
    return Derivation(head, task_insights(table, units, has_rollouts=has_rollouts))


def _by_agent(units: Sequence[Unit]) -> dict[int, list[Unit]]:
    found: dict[int, list[Unit]] = {}
    for unit in units:
        found.setdefault(unit.agent, []).append(unit)
    return found


def _settings(options: ProfileOptions) -> ReadingSettings:
    return ReadingSettings(
        pass_threshold=options.pass_threshold,
        pass_tolerance=PASS_TOLERANCE,
        signal_tolerance=options.signal_tolerance,
        answer_field=options.answer_field,
        leave_out_empty=options.leave_out_empty,
    )
