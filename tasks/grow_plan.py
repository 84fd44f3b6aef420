"""Step: plans more repeats of the tasks that are still undecided."""

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.choosing import plan_extension
from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    round_in_words,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.tasks.shared.run_page import tell


@task(name="grow-plan", task_run_name="next round", cache_policy=NO_CACHE)
async def grow_plan(
    files: RunFiles, options: AdaptiveOptions, reading: ProfileOptions
) -> AdaptiveSummary:
    """Plan more repeats of open tasks; the summary's `num_new` is 0 after the last.

    Raises:
        RecordError: plan and records contradict each other.
    """
    summary = await asyncio.to_thread(plan_extension.grow_plan, files, options, reading)
    tell(round_in_words(summary))
    return summary
