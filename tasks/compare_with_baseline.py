"""Step: compares a profiled output with an earlier one."""

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.choosing.baseline import add_comparison
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.summary.run_summary import RunSummary


@task(
    name="compare-with-baseline",
    task_run_name="compare with {options.baseline}",
    cache_policy=NO_CACHE,
)
async def compare_with_baseline(
    summary: RunSummary,
    files: RunFiles,
    options: BaselineOptions,
    pass_threshold: float,
) -> RunSummary:
    """Write the comparison; return the summary with its verdict as a finding."""
    return await asyncio.to_thread(
        add_comparison, summary, files, options, pass_threshold
    )
