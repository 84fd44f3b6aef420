"""`profile`: collected rollouts become Gym's three files, and what they say."""

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
        rollouts: The collected records: a file, several, or a folder of them, profiled
            as one; of two records of one rollout the first counts, files being in the
            order given, those of a folder in order of name.
        inputs: The plan, the materialized inputs; by default the one beside them.
        output: The rollouts file that the names of what is written are made from; by
            default the records' own.
        allow_partial: Profile what there is, though planned rollouts have no record.
        rebuild: Read the records again, even if they seem not to have changed since
            they were profiled last.
        insights: Say what the rewards mean, too, as --strict and --answer-field do.
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
