"""Whether a run has nothing to do: the same plan, and none of it owed."""

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import CollectOptions
from tasks.operations.collecting import open_shard
from tasks.operations.materializing import CheckedInput, is_planned


def owes_nothing(
    checked: CheckedInput, files: RunFiles, options: CollectOptions
) -> bool:
    """Say whether the input is planned as asked for and every rollout is settled.

    The caller holds the output's lock: damaged lines are set aside, and owed.
    """
    if not files.rollouts.exists() or not files.materialized_inputs.exists():
        return False
    shards = [open_shard(files, i, n, options) for i, n in options.shards()]
    return not any(shard.owed for shard in shards) and is_planned(checked, files)
