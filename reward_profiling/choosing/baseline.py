"""Compares a run with its baseline; the result is a finding and never fails the run."""

from dataclasses import replace
from pathlib import Path

from reward_profiling.choosing.comparing.comparison_file import write_comparison
from reward_profiling.choosing.comparing.judgement import finding_of
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.choosing.comparison_run import compare_outputs
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.summary.run_summary import RunSummary


def add_comparison(
    summary: RunSummary,
    files: RunFiles,
    options: BaselineOptions,
    pass_threshold: float,
) -> RunSummary:
    """Write `<stem>_comparison.json`; return the summary with the verdict in it.

    A baseline that is missing or cannot be compared becomes a finding: it must not cost
    hours of rollouts. `pass_threshold` is a reward.

    Raises:
        OutputWriteError: the disk does not take the file; what was there stays.
    """
    baseline = Path(options.baseline or "")
    settings = CompareOptions(
        max_regression=options.max_regression, pass_threshold=pass_threshold
    )
    try:
        found = compare_outputs(RunFiles(baseline), files, settings)
    except (ConfigError, RecordError) as error:
        return _with(summary, _not_compared(baseline, error))
    write_comparison(files.comparison, found)
    files_written = (*summary.files, str(files.comparison))
    summary = replace(
        summary,
        files=files_written,
        warnings=(*summary.warnings, *found.warnings),
    )
    return _with(summary, finding_of(found))


def _with(summary: RunSummary, finding: Finding | None) -> RunSummary:
    if finding is None:
        return summary
    return replace(summary, findings=(finding, *summary.findings))


def _not_compared(baseline: Path, error: Exception) -> Finding:
    return Finding(
        name="not_compared",
        severity="warning",
        agent=None,
        sentence=f"no comparison with the baseline {baseline}: {error}",
        evidence={},
        remedy="run once into the baseline's path, or give another baseline",
    )
