"""Commands that are plain functions of files: no Prefect, no server."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.exit_codes import ExitCode
from flows.inspection import show_output
from flows.terminal import out, show_summary, warn
from tasks.adapters.output_lock import output_lock
from tasks.adapters.run_directory import RunFiles
from tasks.core.options import PlanOptions, ProfileOptions
from tasks.core.reporting import planned
from tasks.operations.ledgers import count_collected
from tasks.operations.materializing import check_input
from tasks.operations.materializing import materialize as write_plan
from tasks.operations.merging import merge_shards
from tasks.operations.profiling_run import profile_files

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


def profile(
    *,
    rollouts: Path,
    inputs: Path | None = None,
    allow_partial: bool = False,
    options: Annotated[ProfileOptions, Parameter(name="*")] = _PROFILE,
) -> int:
    """Profile collected rollouts into Gym's three files, beside the rollouts.

    Args:
        rollouts: The collected records.
        inputs: The plan, the materialized inputs; by default the one beside them.
        allow_partial: Profile what there is, though planned rollouts have no record.
        options: How rewards are read.
    """
    plan = inputs or RunFiles(rollouts).materialized_inputs
    summary = profile_files(plan, rollouts, options, allow_partial=allow_partial)
    show_summary(summary)
    return ExitCode.PARTIAL if summary.is_partial else ExitCode.WHOLE


def inspect(output: Path, /) -> int:
    """Show what an output holds: its files, how complete it is, its first profiles.

    Args:
        output: The rollouts file.
    """
    return show_output(RunFiles(output))


def merge(output: Path, /) -> int:
    """Put an output's shards together, each rollout once; their files end in its own.

    Args:
        output: The rollouts file; its shards lie beside it.
    """
    files = RunFiles(output)
    with output_lock(files.lock):
        summary = merge_shards(files)
        planned, collected = count_collected(files)
    for shard in summary.missing_shards if collected < planned else ():
        warn(f"shard {shard} is missing")
    out.print(
        f"{summary.merged} records of {summary.num_shards} shards merged,"
        f" {summary.copies} copies dropped"
    )
    out.print(f"{collected} of {planned} planned rollouts collected")
    out.print(f"  {output}", style="dim")
    return ExitCode.PARTIAL if collected < planned else ExitCode.WHOLE
