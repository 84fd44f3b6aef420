"""`profile`: turns collected rollouts into Gym's three files, and into insights."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.option_groups import FILES, PROFILE, fields_of
from reward_profiling.cli.summary_view import show_summary
from reward_profiling.cli.terminal.screen import complain
from reward_profiling.library.profiling import profile as profile_records
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.reporting.outcome import too_bad

_READING = ProfileOptions()
_FILE = Parameter(group=FILES)
_OWN = Parameter(group=PROFILE)


def profile(  # noqa: PLR0913 - one parameter is one option
    *,
    rollouts: Annotated[list[Path], _FILE],
    inputs: Annotated[Path | None, _FILE] = None,
    output: Annotated[Path | None, _FILE] = None,
    allow_partial: Annotated[bool, _OWN] = False,
    rebuild: Annotated[bool, _OWN] = False,
    insights: Annotated[bool, _OWN] = False,
    reading: Annotated[ProfileOptions, fields_of(PROFILE)] = _READING,
) -> int:
    """Profile collected rollouts into Gym's three files, beside the rollouts.

    Args:
        rollouts: The collected records: a file, several files, or a folder, profiled
            as one. If a rollout has two records, the first counts: files are read in
            the order given, those of a folder by name.
        inputs: The plan, that is the materialized inputs. Default: the one beside the
            records.
        output: The rollouts file that the written files are named after. Default: the
            records' own.
        allow_partial: Profile even if planned rollouts have no record.
        rebuild: Read the records again, even if they seem unchanged since the last
            profile.
        insights: Also write the insights, as --strict and --answer-field do.
        reading: How rewards are read.
    """
    summary = profile_records(
        rollouts,
        reading,
        inputs=inputs,
        output=output,
        allow_partial=allow_partial,
        rebuild=rebuild,
        insights=bool(insights or reading.strict or reading.answer_field),
    )
    show_summary(summary)
    if summary.is_partial:
        return ExitCode.PARTIAL
    if (said := too_bad(reading.strict, summary)) is not None:
        complain(said)
        return ExitCode.UNSOUND
    return ExitCode.WHOLE
