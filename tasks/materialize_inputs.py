"""Step: task rows times repeats become the plan."""

import asyncio
from functools import partial
from pathlib import Path

from prefect import task

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import PlanSummary, ReadyServers
from tasks.core.options import PlanOptions
from tasks.core.reporting import planned
from tasks.operations.collecting import read_servers
from tasks.operations.materializing import check_input, files_of, materialize
from tasks.operations.policy_model import refuse_other_model, remember_model
from tasks.run_page import tell, tell_warning
from tasks.step_results import FilesAgree, Given, by_content


def _settings(given: Given) -> object:
    servers: ReadyServers = given["servers"]
    paths = [Path(given[name]).absolute() for name in ("input_path", "output")]
    return (*paths, given["options"], servers.policy_model, servers.assignment)


def _reads(given: Given) -> list[Path]:
    options: PlanOptions = given["options"]
    return [given["input_path"], *files_of(options)]


@task(
    name="materialize-inputs",
    task_run_name="plan {input_path.name}",
    cache_policy=by_content("materialize-inputs", _settings, _reads),
    result_serializer=FilesAgree(),
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
    write = partial(
        materialize,
        checked,
        files,
        resolve=known.agents_of,
        attribute=known.attributed_agents,
    )
    summary = await asyncio.to_thread(write)
    # Collecting would note it, too: then the manifest is not what this step wrote.
    remember_model(files, known.policy_model)
    for warning in summary.warnings:
        tell_warning(warning)
    tell(planned(summary))
    return summary
