"""Step: task rows times repeats become the plan."""

import asyncio
from pathlib import Path

from prefect import task

from reward_profiling.collecting.shard_collection import read_servers
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.on_disk.run_manifest import remember_model
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_changes import refuse_other_model
from reward_profiling.planning.plan_summary import PlanSummary
from reward_profiling.reporting.summary_words import planned
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.tasks import step_keys
from reward_profiling.tasks.run_page import tell, tell_warning
from reward_profiling.tasks.step_results import STORAGE, FilesAgree


@task(
    name="materialize-inputs",
    task_run_name="plan {input_path.name}",
    cache_policy=step_keys.PLAN,
    result_serializer=FilesAgree(),
    result_storage=STORAGE,
)
async def materialize_inputs(
    input_path: Path, output: Path, options: PlanOptions, servers: ReadyServers
) -> PlanSummary:
    """Write the plan beside the output, or leave the same plan as it is.

    Raises:
        ConfigError: the input, or the plan that is there already, does not fit.
    """
    known = await read_servers(servers.head_url)
    files = RunFiles(output)
    refuse_other_model(files, known.policy_model)
    checked = await asyncio.to_thread(check_input, input_path, options)
    by_source, by_server = known.agents_of, known.attributed_agents
    summary = await asyncio.to_thread(materialize, checked, files, by_source, by_server)
    remember_model(files, known.policy_model)  # collecting then leaves the manifest
    for warning in summary.warnings:
        tell_warning(warning)
    tell(planned(summary))
    return summary
