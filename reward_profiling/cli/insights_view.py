"""What a terminal shows of the insights: headline numbers, then the findings."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.insights_file import read_insights_head
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.reporting.insight_words import insights_in_words

_STYLES = {"critical": "bold red", "warning": "yellow", "note": "cyan"}
_LABEL = 15
_SHOWN = 12


def show_insights(summary: RunSummary, out: Console) -> None:
    """Print what a summary's rewards say, and every finding, wrapped to the terminal.

    The numbers are there where insights were written. Findings are the summary's: that
    of a comparison stands in no insights file.
    """
    files = RunFiles(Path(summary.output))
    if str(files.insights) in summary.files:
        for name, sentence in insights_in_words(read_insights_head(files.insights)):
            _print(out, Text(f" {name}".ljust(_LABEL), style="bold"), sentence)
        out.print()
    _show_findings(summary.findings, out)


def _show_findings(findings: Sequence[Finding], out: Console) -> None:
    for finding in findings[:_SHOWN]:
        whose = f"{finding.agent}: " if finding.agent else ""
        label = Text(f" {finding.severity}".ljust(_LABEL))
        label.stylize(_STYLES[finding.severity])
        _print(out, label, f"{whose}{finding.sentence}")
        _print(out, Text(" " * _LABEL), finding.remedy, style="dim")
    if len(findings) > _SHOWN:
        more = f" … and {len(findings) - _SHOWN} more in the insights file"
        out.print(Text(more, style="dim"))
    if findings:
        out.print()


def _print(out: Console, label: Text, sentence: str, style: str = "") -> None:
    width = max(out.width - _LABEL, 20)
    lines = textwrap.wrap(sentence, width, break_on_hyphens=False) or [""]
    for index, line in enumerate(lines):
        start = label if index == 0 else Text(" " * _LABEL)
        out.print(start.copy().append(Text(line, style=style or "default")))
