"""What a run's page shows: tables, and a report with the findings first.

Prefect refuses artifacts above 512 KB, and long ones are hard to read: tables are cut,
and say where the rest is.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reward_profiling.insights.document import Insights
from reward_profiling.insights.section import Section
from reward_profiling.numerics.figures import measured, percent
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary
from reward_profiling.reporting.markdown import code, escaped
from reward_profiling.reporting.outcome import shortened
from reward_profiling.reporting.summary_words import headline, mean_with_error, notices

MAX_BYTES = 400_000
"""Size of one artifact at most, as JSON."""
MAX_ROWS = 200
"""Failed rollouts that are listed."""
MAX_SLOW = 20
"""Slowest rollouts that are listed."""
_SHOWN = 10
"""Failed and slow rollouts that the report itself lists."""
_MAX_AGENTS = 50
"""Agents of the report's own table; the table artifact has more of them."""
_MAX_FINDINGS = 50
_MAX_SENTENCE = 1_000
_MAX_MESSAGE = 300
_UNKNOWN = "unknown"
_LEGEND = (
    "mean reward: mean over tasks ± its standard error; tasks with signal: those whose"
    " rewards differ, of those with two scored rollouts or more"
)

Row = dict[str, str]


class FailedRollout(NamedTuple):
    """A rollout without a record, and its last failure."""

    task_index: int | str
    rollout_index: int | str
    agent: str
    failure_class: str
    message: str


class SlowRollout(NamedTuple):
    """A rollout that took long."""

    seconds: float
    task_index: int | str
    rollout_index: int | str


class RunFacts(NamedTuple):
    """What there is to show of a run, long lists cut."""

    summary: RunSummary
    insights: Insights | None
    failed: Sequence[FailedRollout]
    slowest: Sequence[SlowRollout]
    folder: str
    """Where the files lie, from the root of the machine that ran it."""
    failures_file: str
    timings_file: str


def agent_rows(facts: RunFacts) -> list[Row]:
    """Return a row of words for each agent, with every mean's and share's n."""
    sections = _sections(facts.insights)
    rows = (
        _agent_row(agent, sections.get(agent.agent)) for agent in facts.summary.agents
    )
    return fitting(rows)


def _sections(insights: Insights | None) -> Mapping[str | None, Section]:
    if insights is None:
        return {}
    return {section.agent: section for section in insights.agents}


def _agent_row(agent: AgentSummary, section: Section | None) -> Row:
    return {
        "agent": agent.agent,
        "planned": str(agent.planned),
        "scored": str(agent.scored),
        "failed": str(agent.failed),
        "missing": str(agent.missing),
        "masked": str(agent.masked),
        "unscored": str(agent.unscored),
        "mean reward": f"{mean_with_error(agent)} (n={agent.num_scored_tasks} tasks)",
        "pass rate": _pass_rate(section),
        "tasks with signal": _signal(section),
    }


_MAYBE_NONE = ("failed", "missing", "masked", "unscored")


def _telling(rows: Sequence[Row]) -> list[Row]:
    """Leave out counts that are 0 in every row, so that the table fits the page."""
    hidden = {n for n in _MAYBE_NONE if all(row[n] == "0" for row in rows)}
    return [{n: said for n, said in row.items() if n not in hidden} for row in rows]


def _pass_rate(section: Section | None) -> str:
    if section is None or section.passing.pass_rate is None:
        return _UNKNOWN
    passing = section.passing
    return f"{percent(passing.pass_rate or 0.0)} (n={passing.num_tasks} tasks)"


def _signal(section: Section | None) -> str:
    """Say how many tasks can teach, of those with enough rollouts to know."""
    if section is None or section.signal.zero_signal_share is None:
        return _UNKNOWN
    signal = section.signal
    count = signal.num_signal + signal.num_zero_signal
    return f"{percent(signal.num_signal / count)} ({signal.num_signal} of {count})"


def failed_rows(facts: RunFacts) -> list[Row]:
    """Return a row for each failed rollout that is listed."""
    return fitting(
        {
            "task": str(failed.task_index),
            "repeat": str(failed.rollout_index),
            "agent": failed.agent,
            "failure": failed.failure_class,
            "said": shortened(failed.message, _MAX_MESSAGE),
        }
        for failed in facts.failed
    )


def failed_caption(facts: RunFacts, shown: int) -> str:
    """Say how many failed rollouts there are, how many are shown, and where all are."""
    count = facts.summary.failed
    said = f"{count} rollouts failed"
    if shown < count:
        said += f", {shown} of them shown"
    return f"{said}; every attempt is a line of {facts.failures_file}"


def slow_rows(facts: RunFacts) -> list[Row]:
    """Return a row for each of the slowest rollouts, the slowest first."""
    return [
        {
            "seconds": measured(slow.seconds),
            "task": str(slow.task_index),
            "repeat": str(slow.rollout_index),
        }
        for slow in facts.slowest
    ]


def slow_caption(facts: RunFacts) -> str:
    """Say what the list of slow rollouts is, and where all are."""
    return f"the slowest rollouts; all are in {facts.timings_file}"


def fitting(rows: Iterable[Row], max_bytes: int = MAX_BYTES) -> list[Row]:
    """Return as many of the first rows as fit."""
    kept: list[Row] = []
    size = 0
    for row in rows:
        size += len(json.dumps(row)) + 2
        if size > max_bytes:
            break
        kept.append(row)
    return kept


def report(facts: RunFacts) -> str:
    """Return the report in Markdown: findings first, then numbers, then files."""
    summary = facts.summary
    lines = [f"### {_escaped(headline(summary))}", "", *_finding_lines(summary), ""]
    rows = agent_rows(facts)[:_MAX_AGENTS]
    lines += _table(_telling(rows))
    if len(rows) < len(summary.agents):
        lines += ["", f"{len(rows)} of {len(summary.agents)} agents shown."]
    lines += ["", f"*{_LEGEND}*"]
    if facts.failed:
        failed = failed_rows(facts)[:_SHOWN]
        caption = failed_caption(facts, len(failed))
        lines += ["", "## Failed rollouts", "", f"{caption}.", "", *_table(failed)]
    if facts.slowest:
        slow = slow_rows(facts)[:_SHOWN]
        lines += [
            "",
            "## Slow rollouts",
            "",
            f"{slow_caption(facts)}.",
            "",
            *_table(slow),
        ]
    lines += [
        "",
        "## Files",
        "",
        f"In {code(facts.folder)}:",
        "",
        *_file_lines(summary),
    ]
    return "\n".join(lines) + "\n"


def _finding_lines(summary: RunSummary) -> list[str]:
    told = [
        f"- **{found.severity}** {_whose(found.agent)}{_escaped(found.sentence)}"
        f"  \n  *{_with_code(found.remedy)}*"
        for found in summary.findings[:_MAX_FINDINGS]
    ]
    if len(summary.findings) > _MAX_FINDINGS:
        told.append(f"- … and {len(summary.findings) - _MAX_FINDINGS} more findings")
    others = _stops_and_warnings(summary) if told else notices(summary)
    told += [f"- {_escaped(said)}" for said in others[:_MAX_FINDINGS]]
    return told or ["- no findings"]


def _stops_and_warnings(summary: RunSummary) -> list[str]:
    """Return what the findings of the insights do not say."""
    early = (
        [f"the collection ended early: {summary.stopped}"] if summary.stopped else []
    )
    return [*early, *summary.warnings]


def _whose(agent: str | None) -> str:
    return f"{code(agent)}: " if agent else ""


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, cut where it is long."""
    return escaped(_one_line(text))


def _with_code(text: str) -> str:
    """Return text as `_escaped` does, but let its pairs of backticks mean code."""
    parts = _one_line(text).split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(
        code(part) if place % 2 else escaped(part) for place, part in enumerate(parts)
    )


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _MAX_SENTENCE)


def _file_lines(summary: RunSummary) -> list[str]:
    paths = (summary.output, *summary.files)
    return [f"- {code(path.rpartition('/')[2])}" for path in paths]


def _table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    head = list(rows[0])
    cells = [[_escaped(row[name]) for name in head] for row in rows]
    return [
        "| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *cells)
    ]
