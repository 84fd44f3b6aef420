"""Step: the plan grows by repeats of the tasks that are still open."""

import asyncio
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.adapters.run_directory import RunFiles
from tasks.core.adaptive import AdaptiveOptions, AdaptiveSummary, in_words
from tasks.core.options import ProfileOptions
from tasks.operations import adapting
from tasks.run_page import tell


@task(name="grow-plan", task_run_name="next round", cache_policy=NO_CACHE)
async def grow_plan(
    output: Path, options: AdaptiveOptions, reading: ProfileOptions
) -> AdaptiveSummary:
    """Plan more repeats of open tasks; the summary's `num_new` is 0 when it is over.

    Raises:
        RecordError: plan and records contradict each other.
    """
    files = RunFiles(output)
    summary = await asyncio.to_thread(adapting.grow_plan, files, options, reading)
    tell(in_words(summary))
    return summary
