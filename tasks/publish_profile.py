"""Step: shows the profile on the run's page in Prefect, and announces its end."""

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.outcome import state_message
from reward_profiling.reporting.run_lists import read_run_facts
from reward_profiling.reporting.run_report import (
    agent_rows,
    failed_caption,
    failed_rows,
    report,
    slow_caption,
    slow_rows,
)
from reward_profiling.tasks.shared.run_page import announce, show, table, text


@task(name="publish-profile", task_run_name="publish", cache_policy=NO_CACHE)
async def publish_profile(summary: RunSummary, files: RunFiles) -> None:
    """Show the summary as tables and as a report; the files stay where they are."""
    facts = await asyncio.to_thread(read_run_facts, summary, files)
    said = state_message(summary)
    failed, slowest = failed_rows(facts), slow_rows(facts)
    output = files.rollouts
    reports = [
        text("reward-profiling-report", output, report(facts), said),
        table("reward-profiling-agents", output, agent_rows(facts), said),
    ]
    if failed:
        caption = failed_caption(facts, len(failed))
        reports.append(table("reward-profiling-failures", output, failed, caption))
    if slowest:
        caption = slow_caption(facts)
        reports.append(table("reward-profiling-slowest", output, slowest, caption))
    await show(*reports)
    announce(summary)
