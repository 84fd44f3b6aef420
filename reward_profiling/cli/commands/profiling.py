"""`profile`: turns collected rollouts into Gym's three files, and into insights."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.option_groups import FILES, PROFILE, fields_of
from reward_profiling.cli.summary_view import show_summary
from reward_profiling.cli.terminal.screen import complain
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_given
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
    sources = sources_given(rollouts, inputs=inputs, output=output)
    wants_insights = insights or reading.strict or reading.answer_field
    request = ProfileRequest(
        pass_threshold=reading.pass_threshold,
        allow_partial=allow_partial,
        rebuild=rebuild,
        replies=bool(wants_insights),
    )
    summary = profile_run(sources, request)
    if wants_insights:
        # Takes longer to import than a small profile takes to make.
        from reward_profiling.insights.insights_run import add_insights  # noqa: PLC0415

        summary = add_insights(
            summary,
            sources.files,
            reading,
            inputs=sources.inputs,
            rollouts=sources.rollouts,
        )
    show_summary(summary)
    if summary.is_partial:
        return ExitCode.PARTIAL
    if (said := too_bad(reading.strict, summary)) is not None:
        complain(said)
        return ExitCode.UNSOUND
    return ExitCode.WHOLE
