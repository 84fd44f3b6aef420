"""Tables of the report: agents, lengths, signal, and what else was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.components import Component
from reward_profiling.insights.measures.length import Subset
from reward_profiling.insights.measures.reward import RewardEstimate
from reward_profiling.insights.section import Section
from reward_profiling.reporting.page.parts import NamedTable, TextTable
from reward_profiling.reporting.page.words import (
    UNKNOWN,
    clean,
    interval,
    number,
    of,
    share,
    signed,
)

_MOST_ROWS = 200
_NAME = 80


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> TextTable:
    note = ""
    if len(rows) > _MOST_ROWS:
        note = f"The first {_MOST_ROWS} of {len(rows):,}; the insights list all."
    return TextTable(head, tuple(rows[:_MOST_ROWS]), note)


def agents_table(insights: Insights, names: Mapping[str, str]) -> TextTable:
    """Return coverage first, then rewards and classes: a row for each agent."""
    table = _table(
        (
            "agent", "scored of planned", "scored tasks", "mean reward", "interval",
            "pass rate", "never", "sometimes", "always", "undetermined",
        ),
        [_agent_row(section, names) for section in _sections(insights)],
    )  # fmt: skip
    said = f"Intervals of means over tasks, at {share(insights.reading.confidence)}."
    return replace(table, note=f"{said} {table.note}".rstrip())


def _sections(insights: Insights) -> Sequence[Section]:
    """Return the agents, and the run as a whole where that is not the same."""
    agents = insights.agents
    return agents if len(agents) == 1 else (*agents, insights.run)


def _agent_row(section: Section, names: Mapping[str, str]) -> tuple[str, ...]:
    coverage, reward, signal = section.coverage, section.reward, section.signal
    return (
        "all" if section.agent is None else names[section.agent],
        f"{of(coverage.scored, coverage.planned)} ({share(coverage.scored_share)})",
        of(coverage.num_scored_tasks, coverage.num_tasks),
        number(reward.macro_mean),
        _interval(reward),
        share(section.passing.pass_rate),
        f"{signal.never:,}",
        f"{signal.sometimes:,}",
        f"{signal.always:,}",
        f"{signal.undetermined:,}",
    )


def _interval(reward: RewardEstimate) -> str:
    """Return the mean's interval, or its error; a dash if that is 0."""
    bounds = reward.interval
    if bounds is not None and bounds.low < bounds.high:
        return interval(bounds)
    error = reward.standard_error
    return f"error {number(error)}" if error else UNKNOWN


def further_tables(
    insights: Insights, names: Mapping[str, str]
) -> Iterator[NamedTable]:
    """Yield the tables that hold something, most asked for first."""
    yield _means(insights)
    yield _lengths(insights, names)
    yield _subsets(insights)
    yield from _signal(insights)
    yield from _metrics(insights)


def _means(insights: Insights) -> NamedTable:
    reward = insights.run.reward
    tasks, rollouts = f"{reward.num_tasks:,} tasks", f"{reward.num_rollouts:,} rollouts"
    rerun = f"{reward.num_rerun_tasks:,} tasks with two rollouts or more"
    rows = (
        ("mean over tasks (the headline)", reward.macro_mean,
         reward.standard_error, tasks),
        ("the same, if these tasks were run again", reward.macro_mean,
         reward.rerun_standard_error, rerun),
        ("mean over rollouts, error clustered by task", reward.micro_mean,
         reward.micro_standard_error, rollouts),
        ("mean over tasks, failed and unscored as 0", reward.mean_failures_as_zero,
         None, f"{reward.num_tasks_failures_as_zero:,} tasks"),
        ("spread between task means (std)", reward.between_task_std, None, tasks),
        ("spread within a task (std)", reward.within_task_std, None, rerun),
        ("smallest reward", reward.min, None, rollouts),
        ("largest reward", reward.max, None, rollouts),
    )  # fmt: skip
    return NamedTable(
        "Mean reward, by every method",
        _table(
            ("", "value", "standard error", "over"),
            # An error of 0 claims a certainty that equal values do not give.
            [(name, number(value), number(error or None), basis)
             for name, value, error, basis in rows],
        ),
    )  # fmt: skip


def _lengths(insights: Insights, names: Mapping[str, str]) -> NamedTable:
    rows = []
    for section in _sections(insights):
        length, found = section.length, section.length.correlation
        rows.append((
            "all" if section.agent is None else names[section.agent],
            number(length.mean_tokens),
            number(length.median_tokens),
            number(length.p95_tokens),
            number(length.max_tokens),
            f"{length.num_with_tokens:,}",
            signed(found.spearman),
            signed(found.within_spearman),
            f"{found.num_rollouts:,}",
        ))  # fmt: skip
    return NamedTable(
        "Output tokens, and their rank correlation with reward",
        _table(
            ("agent", "mean", "median", "95th percentile", "most", "records",
             "correlation", "within tasks", "rollouts"),
            rows,
        ),
    )  # fmt: skip


def _subsets(insights: Insights) -> NamedTable:
    length = insights.run.length
    pairs = (
        ("cut off", length.truncated),
        ("finished", length.finished),
        ("empty", length.empty),
        ("with an answer", length.answered),
        ("passed", length.passed),
        ("missed", length.missed),
    )
    return NamedTable(
        "Scored rollouts by kind",
        _table(
            ("", "rollouts", "pass rate", "mean reward", "mean tokens", "with a count"),
            [_subset_row(name, subset) for name, subset in pairs],
        ),
    )


def _subset_row(name: str, subset: Subset) -> tuple[str, ...]:
    return (
        name,
        f"{subset.num_rollouts:,}",
        share(subset.pass_rate),
        number(subset.mean_reward),
        number(subset.mean_tokens),
        f"{subset.num_with_tokens:,}",
    )


def _signal(insights: Insights) -> Iterator[NamedTable]:
    signal = insights.run.signal
    if signal.bands:
        head = ("band", "rule", "tasks kept", "of tasks with two rollouts or more")
        bands = [
            (band.name, band.rule, f"{band.num_kept:,}", f"{band.num_tasks:,}")
            for band in signal.bands
        ]
        yield NamedTable("Tasks in published difficulty bands", _table(head, bands))
    if signal.components:
        yield NamedTable("Components of the reward", _components(signal.components))


def _components(components: Sequence[Component]) -> TextTable:
    return _table(
        (
            "component", "mean", "std", "rollouts", "tasks in which it differs",
            "only there",
        ),
        [
            (
                clean(part.name, _NAME), number(part.mean), number(part.std),
                f"{part.num_rollouts:,}", of(part.num_signal, part.num_tasks),
                f"{part.num_signal_only_here:,}",
            )
            for part in components
        ],
    )  # fmt: skip


def _metrics(insights: Insights) -> Iterator[NamedTable]:
    if not insights.metrics:
        return
    head = ("metric", "mean", "std", "smallest", "largest", "rollouts", "")
    rows = [
        (
            clean(metric.name, _NAME), number(metric.mean), number(metric.std),
            number(metric.min), number(metric.max), f"{metric.num_rollouts:,}",
            "looks like an id" if metric.is_identifier else "",
        )
        for metric in insights.metrics
    ]  # fmt: skip
    yield NamedTable("Other numbers of the records", _table(head, rows))
