"""Step: writes the plan, one line per task row and repeat."""

import asyncio

from prefect import task

from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import CheckedInput, check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.on_disk.run_manifest import remember_model
from reward_profiling.planning.plan_changes import refuse_other_model
from reward_profiling.planning.plan_summary import PlanSummary
from reward_profiling.reporting.summary_words import planned
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.shared import step_keys
from reward_profiling.tasks.shared.run_page import tell, tell_warning
from reward_profiling.tasks.shared.step_results import STORAGE, FilesAgree


@task(
    name="materialize-inputs",
    task_run_name="plan {checked.path.name}",
    cache_policy=step_keys.PLAN,
    result_serializer=FilesAgree(),
    result_storage=STORAGE,
)
async def materialize_inputs(
    checked: CheckedInput, files: RunFiles, servers: Servers
) -> PlanSummary:
    """Write the plan beside the output, or leave the same plan as it is.

    Raises:
        ConfigError: the input, or the plan that is there already, does not fit.
    """
    refuse_other_model(files, servers.policy_model)
    # The input may have changed while the servers started: lines are read again from
    # the places that the check recorded.
    given = checked.path, checked.options, checked
    checked = await asyncio.to_thread(check_input, *given)
    by_source, by_server = servers.agents_of, servers.attributed_agents
    summary = await asyncio.to_thread(materialize, checked, files, by_source, by_server)
    remember_model(files, servers.policy_model)  # collecting then leaves the manifest
    for warning in summary.warnings:
        tell_warning(warning)
    tell(planned(summary))
    return summary
