"""`merge`: joins the shards of an output into one file."""

from pathlib import Path

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.collecting.ledger import count_collected
from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import ConfigError
from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles


def merge(output: Path, /) -> int:
    """Join an output's shards into its own files, each rollout once.

    Args:
        output: The rollouts file; its shards are beside it.
    """
    files = RunFiles(output)
    if not files.materialized_inputs.exists():
        raise ConfigError(
            f"{files.materialized_inputs} does not exist, so nothing was merged: put"
            " the plan back, since only it says which rollouts are missing"
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
    out.show(file_lines([output]))
    return ExitCode.PARTIAL if collected < planned else ExitCode.WHOLE
