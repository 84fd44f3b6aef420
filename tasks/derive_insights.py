"""Step: writes the insights and the report."""

import asyncio

from prefect import task

from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.insights_run import add_insights
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.report_run import add_report
from reward_profiling.tasks.shared import step_keys
from reward_profiling.tasks.shared.step_results import STORAGE, FilesAgree


@task(
    name="derive-insights",
    task_run_name="insights",
    cache_policy=step_keys.INSIGHTS,
    result_serializer=FilesAgree(),
    result_storage=STORAGE,
)
async def derive_insights(
    summary: RunSummary, files: RunFiles, options: ProfileOptions
) -> RunSummary:
    """Write the insights and the report; return the summary with their findings.

    Raises:
        RecordError: plan and records contradict each other.
    """

    def derive() -> RunSummary:
        return add_report(add_insights(summary, files, options), files)

    return await asyncio.to_thread(derive)
