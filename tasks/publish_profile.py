"""Step: the profile on the run's page in Prefect."""

from prefect import task
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.cache_policies import NO_CACHE

from tasks.core.models import RunSummary
from tasks.core.reporting import COLUMNS, agent_cells, headline, markdown
from tasks.run_page import dropped_when_away


@task(name="publish-profile", task_run_name="publish", cache_policy=NO_CACHE)
async def publish_profile(summary: RunSummary) -> None:
    """Show the summary as a table and as a report; the files stay where they are."""
    said = headline(summary)
    table = [
        dict(zip(COLUMNS, agent_cells(agent), strict=True)) for agent in summary.agents
    ]
    async with dropped_when_away():
        await acreate_table_artifact(
            table, key="reward-profiling-agents", description=said
        )
        await acreate_markdown_artifact(
            markdown(summary), key="reward-profiling-report", description=said
        )
