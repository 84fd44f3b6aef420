"""Step: turns records into Gym's three profile files and a summary."""

import asyncio

from prefect import task

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_output
from reward_profiling.profiling.summary.run_summary import RunSummary, with_stops
from reward_profiling.tasks.shared import step_keys
from reward_profiling.tasks.shared.step_results import STORAGE, FilesAgree


@task(
    name="profile-rewards",
    task_run_name="profile",
    cache_policy=step_keys.PROFILE,
    result_serializer=FilesAgree(),
    result_storage=STORAGE,
)
async def profile_rewards(
    files: RunFiles, options: ProfileOptions, shards: list[ShardSummary]
) -> RunSummary:
    """Profile what was collected, complete or not, and return its summary.

    Raises:
        RecordError: plan and records contradict each other.
    """
    summary = await asyncio.to_thread(profile_output, files, options)
    return with_stops(summary, shards)
