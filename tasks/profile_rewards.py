"""Step: records become Gym's three profile files and a summary."""

import asyncio
from pathlib import Path

from prefect import task

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import RunSummary, ShardSummary, with_stops
from tasks.core.options import ProfileOptions
from tasks.operations.profiling_run import profile_output
from tasks.step_results import FilesAgree, Given, by_content


def _settings(given: Given) -> object:
    stops = [(one.stopped, one.is_failed) for one in given["shards"] if one.stopped]
    return (given["output"].absolute(), given["options"], stops)


def _reads(given: Given) -> list[Path]:
    files = RunFiles(given["output"])
    return [files.materialized_inputs, files.rollouts, files.failures]


@task(
    name="profile-rewards",
    task_run_name="profile",
    cache_policy=by_content("profile-rewards", _settings, _reads),
    result_serializer=FilesAgree(),
)
async def profile_rewards(
    output: Path, options: ProfileOptions, shards: list[ShardSummary]
) -> RunSummary:
    """Profile what was collected, whole or not, and say how much of it there is.

    Raises:
        RecordError: plan and records contradict each other.
    """
    summary = await asyncio.to_thread(profile_output, RunFiles(output), options)
    return with_stops(summary, shards)
