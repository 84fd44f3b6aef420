"""Report: the insights of an output become a page to look at."""

from pathlib import Path

from reward_profiling.files.run_files import RunFiles
from reward_profiling.reporting.report_run import WrittenReport, write_report


def report(output: Path | str) -> WrittenReport:
    """Write a page of what the rewards say, `<stem>_report.html`.

    Args:
        output: The rollouts file; its insights lie beside it.

    Raises:
        ConfigError: there are no insights yet, or they cannot be read.
        RecordError: the insights are of another version, or damaged; names the file.
    """
    return write_report(RunFiles(Path(output)))
