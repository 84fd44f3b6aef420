"""Step: the environment servers' own metrics over what was collected."""

from prefect import task

from reward_profiling.collecting.aggregation.aggregate_metrics import aggregate
from reward_profiling.collecting.aggregation.aggregate_summary import AggregateSummary
from reward_profiling.collecting.options import AggregateOptions
from reward_profiling.files.run_files import RunFiles
from reward_profiling.reporting.summary_words import zeros
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.shared import step_keys
from reward_profiling.tasks.shared.run_page import tell, tell_warning
from reward_profiling.tasks.shared.step_results import STORAGE, FilesAgree


@task(
    name="aggregate-metrics",
    task_run_name="aggregate",
    cache_policy=step_keys.AGGREGATE,
    result_serializer=FilesAgree(),
    result_storage=STORAGE,
)
async def aggregate_metrics(
    files: RunFiles, servers: Servers, options: AggregateOptions
) -> AggregateSummary:
    """Write the servers' metrics beside the output; warn of servers that are down.

    Raises:
        RecordError: a record cannot be read.
    """
    summary = await aggregate(files, servers, options)
    for warning in summary.warnings:
        tell_warning(warning)
    if told := zeros(summary):
        tell(told)
    tell(f"metrics of {summary.num_servers} environment servers aggregated")
    return summary
