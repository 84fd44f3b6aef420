"""The table of an output's rollouts: what the insights are derived from."""

from collections.abc import Sequence
from pathlib import Path

from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.run_reading import (
    ProfileRequest,
    Sources,
    read_run,
    without_cyclic_collection,
)


def read_rollout_table(
    files: RunFiles,
    *,
    inputs: Path | None = None,
    rollouts: Sequence[Path] | None = None,
) -> RolloutTable:
    """Read plan, records and failures of an output into one row per planned rollout.

    `inputs` is the plan and `rollouts` the files of records, where they are not the
    output's own.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: a line is none of the run's; names file and line.
    """
    plan = inputs or files.materialized_inputs
    sources = Sources(plan, tuple(rollouts or [files.rollouts]), files)
    with without_cyclic_collection():
        request = ProfileRequest(allow_partial=True, replies=True)
        return read_run(sources, request).full_table()
