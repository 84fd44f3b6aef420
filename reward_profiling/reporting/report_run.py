"""Report: turns the insights of an output into a page."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import replace_bytes
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.document import Insights
from reward_profiling.insights.insights_file import read_insights
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.page.contents import agent_names, page
from reward_profiling.reporting.page.task_columns import rollout_columns, task_columns
from reward_profiling.reporting.report_template import rendered


class WrittenReport(NamedTuple):
    """A report that was written."""

    path: Path
    """Where it lies."""

    num_bytes: int
    """Its size."""

    num_findings: int
    """Findings that it shows."""

    is_outdated: bool
    """Whether records were written after the insights that it was made from."""


def write_report(files: RunFiles) -> WrittenReport:
    """Write `<stem>_report.html` from `<stem>_insights.json`, whole or not at all.

    Raises:
        ConfigError: there are no insights yet, or they cannot be read.
        RecordError: the insights are of another version, or damaged; names the file.
    """
    require_insights(files)
    insights = read_insights(files.insights)
    content = report_page(insights)
    replace_bytes(files.report, content)
    return WrittenReport(
        path=files.report,
        num_bytes=len(content),
        num_findings=len(insights.findings),
        is_outdated=_is_newer(files.rollouts, files.insights),
    )


def require_insights(files: RunFiles) -> None:
    """Refuse an output that has no insights.

    Raises:
        ConfigError: names the file and the command that writes it.
    """
    if not files.insights.exists():
        raise ConfigError(
            f"{files.insights} does not exist; write it with `reward-profiling profile"
            f" --insights --rollouts {files.rollouts}`"
        )


def add_report(summary: RunSummary, files: RunFiles) -> RunSummary:
    """Write the report, and return the summary with its path among the files.

    Raises:
        ConfigError: there are no insights yet, or they cannot be read.
        RecordError: the insights are of another version, or damaged; names the file.
    """
    written = write_report(files)
    return replace(summary, files=(*summary.files, str(written.path)))


def report_page(insights: Insights) -> bytes:
    """Return the page; the same insights give the same bytes."""
    names = agent_names(insights)
    return rendered(
        page(insights, names), task_columns(insights, names), rollout_columns(insights)
    )


def _is_newer(one: Path, other: Path) -> bool:
    return one.exists() and one.stat().st_mtime > other.stat().st_mtime
