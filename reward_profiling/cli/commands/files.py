"""Commands that are plain functions of files: no Prefect, no server."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.inspection_view import show_output
from reward_profiling.cli.terminal import complain, out, show_summary, warn
from reward_profiling.collecting.ledger import count_collected
from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import ConfigError
from reward_profiling.files.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.insights_run import add_insights
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize as write_plan
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_given
from reward_profiling.reporting.inspection import output_named
from reward_profiling.reporting.outcome import too_bad
from reward_profiling.reporting.summary_words import planned

_PLAN = PlanOptions()
_PROFILE = ProfileOptions()


def materialize(
    *,
    input: Path,  # noqa: A002 - the flag's name
    output: Path,
    plan: Annotated[PlanOptions, Parameter(name="*")] = _PLAN,
) -> int:
    """Write the plan of a task file: one line per rollout to collect.

    Args:
        input: Task rows, one JSON object a line.
        output: The rollouts file; the plan lies beside it and is named from it.
        plan: How task rows become planned rollouts.
    """
    files = RunFiles(output)
    checked = check_input(input, plan)
    with output_lock(files.lock):
        summary = write_plan(checked, files)
    for warning in summary.warnings:
        warn(warning)
    out.print(planned(summary))
    out.print(f"  {summary.path}", style="dim")
    return ExitCode.WHOLE


def profile(  # noqa: PLR0913 - one parameter is one option
    *,
    rollouts: list[Path],
    inputs: Path | None = None,
    output: Path | None = None,
    allow_partial: bool = False,
    rebuild: bool = False,
    insights: bool = False,
    options: Annotated[ProfileOptions, Parameter(name="*")] = _PROFILE,
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
        options: How rewards are read.
    """
    sources = sources_given(rollouts, inputs=inputs, output=output)
    wants_insights = insights or options.strict or options.answer_field
    request = ProfileRequest(
        pass_threshold=options.pass_threshold,
        allow_partial=allow_partial,
        rebuild=rebuild,
        replies=bool(wants_insights),
    )
    summary = profile_run(sources, request)
    if wants_insights:
        summary = add_insights(
            summary,
            sources.files,
            options,
            inputs=sources.inputs,
            rollouts=sources.rollouts,
        )
    show_summary(summary)
    if summary.is_partial:
        return ExitCode.PARTIAL
    if (said := too_bad(options.strict, summary)) is not None:
        complain(said)
        return ExitCode.UNSOUND
    return ExitCode.WHOLE


def inspect(
    output: Path,
    /,
    *,
    pass_threshold: float = _PROFILE.pass_threshold,
    json: bool = False,
) -> int:
    """Show what an output holds: its files, how complete it is, how its tasks did.

    Args:
        output: The rollouts file, or the folder that it lies in.
        pass_threshold: A rollout passes when its reward is at least this.
        json: Print one JSON object, for machines.
    """
    options = ProfileOptions(pass_threshold=pass_threshold)  # which refuses "nan"
    files = output_named(output)
    return show_output(files, pass_threshold=options.pass_threshold, as_json=json)


def merge(output: Path, /) -> int:
    """Put an output's shards together, each rollout once; their files end in its own.

    Args:
        output: The rollouts file; its shards lie beside it.
    """
    files = RunFiles(output)
    if not files.materialized_inputs.exists():
        raise ConfigError(
            f"{files.materialized_inputs} does not exist: without a plan nobody knows"
            " what is missing; nothing was merged"
        )
    with output_lock(files.lock):
        summary = merge_shards(files)
        planned, collected = count_collected(files)
    if summary.set_aside:
        lines = "line was" if summary.set_aside == 1 else "lines were"
        warn(f"{summary.set_aside} damaged {lines} set aside in *.damaged.jsonl")
    for shard in summary.missing_shards if collected < planned else ():
        warn(f"shard {shard} is missing")
    out.print(
        f"{summary.merged} records of {summary.num_shards} shards merged,"
        f" {summary.copies} copies dropped"
    )
    out.print(f"{collected} of {planned} planned rollouts collected")
    out.print(f"  {output}", style="dim")
    return ExitCode.PARTIAL if collected < planned else ExitCode.WHOLE
