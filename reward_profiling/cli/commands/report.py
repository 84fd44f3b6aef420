"""The command that writes a page of what the rewards say."""

from pathlib import Path

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.library.reporting import report as write_report


def report(output: Path, /) -> int:
    """Write a page of what the rewards say: findings, plots, every task's rollouts.

    One file that opens anywhere and asks nothing of any network. `run`, and `profile`
    with --insights, write what it is made from.

    Args:
        output: The rollouts file; the page lies beside it.
    """
    written = write_report(output)
    if written.is_outdated:
        warn(
            f"{output} has records that the insights do not know; run `profile"
            " --insights` again, then write the report"
        )
    noun = "finding" if written.num_findings == 1 else "findings"
    size = f"{written.num_bytes / 1e6:.1f} MB"
    out.print(f"{written.num_findings} {noun} shown, {size}")
    out.show(file_lines([written.path]))
    return ExitCode.WHOLE
