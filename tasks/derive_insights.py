"""Step: what the rewards say, in a file of its own."""

import asyncio
from pathlib import Path

from prefect import task

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import RunSummary
from tasks.core.options import ProfileOptions
from tasks.operations.insights_run import add_insights
from tasks.step_results import FilesAgree, Given, by_content


def _settings(given: Given) -> object:
    return (given["summary"], given["options"])


def _reads(given: Given) -> list[Path]:
    files = RunFiles(Path(given["summary"].output))
    records = [files.materialized_inputs, files.rollouts, files.failures]
    return [*records, files.timings, files.run]


@task(
    name="derive-insights",
    task_run_name="insights",
    cache_policy=by_content("derive-insights", _settings, _reads),
    result_serializer=FilesAgree(),
)
async def derive_insights(summary: RunSummary, options: ProfileOptions) -> RunSummary:
    """Write the insights of a profiled output; return the summary with their findings.

    Raises:
        RecordError: plan and records contradict each other.
    """
    files = RunFiles(Path(summary.output))
    return await asyncio.to_thread(add_insights, summary, files, options)
