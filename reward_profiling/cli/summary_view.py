"""The summary of a run: what is missing, the agents, the insights, the files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from reward_profiling.cli.terminal.lines import (
    StyledLine,
    file_lines,
    labelled_lines,
    table_lines,
)
from reward_profiling.cli.terminal.screen import out
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.summary_words import (
    COLUMNS,
    LEGEND,
    agent_cells,
    headline,
    notices,
)

_STYLES = {"critical": "bold red", "warning": "yellow", "note": "cyan"}
_LABEL = 15
_SHOWN = 12


def show_summary(summary: RunSummary) -> None:
    """Print a run's summary: first what is missing, then what was collected."""
    out.show(_counts(summary, out.width))
    out.show(_insights(summary, out.width))
    out.show(_findings(summary.findings, out.width))
    out.show(file_lines(summary.files))


def _counts(summary: RunSummary, width: int) -> Iterator[StyledLine]:
    """Yield what is missing first, then a table of the agents."""
    is_whole = not summary.is_partial and not summary.unscored
    yield StyledLine(headline(summary), "bold green" if is_whole else "bold yellow")
    for notice in notices(summary):
        yield StyledLine(f"  ! {notice}", "yellow")
    yield StyledLine("")
    rows = [agent_cells(agent) for agent in summary.agents]
    yield from table_lines(COLUMNS, rows, width)
    yield from labelled_lines(StyledLine(" "), LEGEND, width - 1, "dim")
    yield StyledLine("")


def _insights(summary: RunSummary, width: int) -> Iterator[StyledLine]:
    """Yield the insights, if they were written."""
    files = RunFiles(Path(summary.output))
    if str(files.insights) not in summary.files:
        return
    # These take longer to import than a small profile takes to make.
    from reward_profiling.insights.insights_file import (  # noqa: PLC0415
        read_insights_head,
    )
    from reward_profiling.reporting.insight_words import insights_in_words  # noqa: PLC0415

    for name, sentence in insights_in_words(read_insights_head(files.insights)):
        label = StyledLine(f" {name}".ljust(_LABEL), "bold")
        yield from labelled_lines(label, sentence, width)
    yield StyledLine("")


def _findings(findings: Sequence[Finding], width: int) -> Iterator[StyledLine]:
    for finding in findings[:_SHOWN]:
        whose = f"{finding.agent}: " if finding.agent else ""
        label = StyledLine(
            f" {finding.severity}".ljust(_LABEL), _STYLES[finding.severity]
        )
        yield from labelled_lines(label, f"{whose}{finding.sentence}", width)
        remedy = StyledLine(" " * _LABEL)
        yield from labelled_lines(remedy, finding.remedy, width, "dim")
    if len(findings) > _SHOWN:
        more = f" … and {len(findings) - _SHOWN} more in the insights file"
        yield StyledLine(more, "dim")
    if findings:
        yield StyledLine("")
