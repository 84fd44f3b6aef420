"""Step: merges the shards' files."""

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.collecting.shard_summary import MergeSummary, ShardSummary
from reward_profiling.collecting.spreading import shard_merge
from reward_profiling.files.run_files import RunFiles
from reward_profiling.tasks.shared.run_page import tell_warning


@task(name="merge-shards", task_run_name="merge the shards", cache_policy=NO_CACHE)
async def merge_shards(files: RunFiles, shards: list[ShardSummary]) -> MergeSummary:
    """Merge what the shards collected into the output, after all have ended.

    Raises:
        RecordError: a shard's file cannot be read.
    """
    del shards  # the files are the truth; this says what had to end first
    merged = await asyncio.to_thread(shard_merge.merge_shards, files)
    if merged.set_aside:
        tell_warning(f"{merged.set_aside} damaged lines of shards were set aside")
    for shard in merged.busy_shards:
        tell_warning(f"shard {shard} has not stopped yet; the next run merges it")
    return merged
