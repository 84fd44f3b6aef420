"""`report`: writes the insights as a page."""

from pathlib import Path

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.library.reporting import report as write_report


def report(output: Path, /) -> int:
    """Write the insights as a page: findings, plots, every task's rollouts.

    The page is one file that opens anywhere and makes no network requests. `run`, and
    `profile` with --insights, write the insights that it needs.

    Args:
        output: The rollouts file; the page is written beside it.
    """
    written = write_report(output)
    if written.is_outdated:
        warn(
            f"{output} has records newer than the insights; run `profile --insights`"
            " again, then `report`"
        )
    noun = "finding" if written.num_findings == 1 else "findings"
    size = f"{written.num_bytes / 1e6:.1f} MB"
    out.print(f"{written.num_findings} {noun} shown, {size}")
    out.show(file_lines([written.path]))
    return ExitCode.WHOLE
