"""Step: records become Gym's three profile files and a summary."""

import asyncio
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import RunSummary, ShardSummary
from tasks.core.options import ProfileOptions
from tasks.core.summary import with_stops
from tasks.operations.profiling_run import profile_output
from tasks.operations.watching import watcher


@task(name="profile-rewards", task_run_name="profile", cache_policy=NO_CACHE)
async def profile_rewards(
    output: Path, options: ProfileOptions, shards: list[ShardSummary]
) -> RunSummary:
    """Profile what was collected, whole or not, and say how much of it there is.

    Raises:
        RecordError: plan and records contradict each other.
    """
    summary = await asyncio.to_thread(profile_output, RunFiles(output), options)
    summary = with_stops(summary, shards)
    watcher.get().end(summary)
    return summary
