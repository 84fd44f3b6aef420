"""The workflow: servers → plan → rollouts → metrics → profile → page.

What is owed is computed from the files beside the output, so that the same run again
does only the rest. Prefect conducts; it is never asked what was done.
"""

import asyncio

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.parameters import RewardProfilingParams
from flows.run_name import run_name
from tasks.adapters.output_lock import output_lock
from tasks.adapters.run_directory import RunFiles
from tasks.aggregate_metrics import aggregate_metrics
from tasks.collect_shard import collect_shard
from tasks.core.models import RunSummary, ShardSummary
from tasks.core.reporting import headline
from tasks.materialize_inputs import materialize_inputs
from tasks.merge_shards import merge_shards
from tasks.operations.materializing import check_input
from tasks.operations.serving import serving
from tasks.operations.settling import owes_nothing
from tasks.operations.stopping import exit_code_of_signal, stop_on_signals
from tasks.profile_rewards import profile_rewards
from tasks.publish_profile import publish_profile
from tasks.run_page import servers_observer, tell
from tasks.start_servers import start_servers


@flow(name="reward-profiling", flow_run_name=run_name)
async def reward_profiling(params: RewardProfilingParams) -> State[RunSummary]:
    """Profile the rewards of a task file on NeMo Gym environments."""
    files = RunFiles(params.output)
    checked = check_input(params.input_path, params.plan)  # before anything starts

    shards: list[ShardSummary] = []
    with stop_on_signals(), output_lock(files.lock):
        if owes_nothing(checked, files, params.collect):
            tell("nothing to do: every planned rollout is collected or given up")
        else:
            observe = servers_observer()
            async with serving(params.servers, files, observe) as head_url:
                servers = await start_servers(head_url, params.servers.start_timeout)
                await materialize_inputs(
                    params.input_path, params.output, params.plan, servers
                )
                shards = await asyncio.gather(
                    *(
                        collect_shard(params.output, index, params.collect, servers)
                        for index in range(params.collect.num_shards)
                    )
                )
                await merge_shards(params.output, shards)
                await aggregate_metrics(params.output, servers, params.aggregate)
        summary = await profile_rewards(params.output, params.profile, shards)

    await publish_profile(summary)
    said = headline(summary)
    if summary.is_partial:
        name = "Partial" if exit_code_of_signal() is None else "Interrupted"
        return Failed(name=name, message=said, data=summary)
    return Completed(message=said, data=summary)
