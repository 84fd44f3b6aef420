"""Profile: collected rollouts become Gym's three files, a table, and insights."""

from collections.abc import Sequence
from pathlib import Path

from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_given
from reward_profiling.profiling.summary.run_summary import RunSummary


def profile(  # noqa: PLR0913 - each is an option of the command
    rollouts: Path | str | Sequence[Path | str],
    options: ProfileOptions | None = None,
    *,
    inputs: Path | str | None = None,
    output: Path | str | None = None,
    allow_partial: bool = False,
    rebuild: bool = False,
    insights: bool = True,
) -> RunSummary:
    """Profile collected rollouts, and say what the rewards mean.

    Args:
        rollouts: The collected records: a file, several, or a folder of them, profiled
            as one. Of two records of one rollout the first counts.
        options: How rewards are read.
        inputs: The plan (materialized inputs); by default the one beside the records.
        output: The rollouts file that the names of what is written are made from.
        allow_partial: Profile what there is, though planned rollouts have no record.
        rebuild: Read the records again, though they have not changed.
        insights: Write `<stem>_insights.json`, too; the summary holds its findings.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    reading = options or ProfileOptions()
    given = [rollouts] if isinstance(rollouts, str | Path) else rollouts
    sources = sources_given(
        [Path(path) for path in given],
        inputs=None if inputs is None else Path(inputs),
        output=None if output is None else Path(output),
    )
    request = ProfileRequest(
        pass_threshold=reading.pass_threshold,
        allow_partial=allow_partial,
        rebuild=rebuild,
        replies=insights,
    )
    summary = profile_run(sources, request)
    if not insights:
        return summary
    # Takes longer to import than a small profile takes to make.
    from reward_profiling.insights.insights_run import add_insights  # noqa: PLC0415

    return add_insights(
        summary,
        sources.files,
        reading,
        inputs=sources.inputs,
        rollouts=sources.rollouts,
    )
