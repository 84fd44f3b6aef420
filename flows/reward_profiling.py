"""The workflow: servers → plan → rollouts → metrics → profile → page.

What is owed is computed from the files beside the output, so that the same run again
does only the rest. Prefect conducts; it is never asked what was done.
"""

from prefect.client.schemas.objects import State

from flows.ending import CUT_SHORT, final_state, stopped_state
from flows.model_flow import model_flow
from flows.orphaned import outlasting_its_worker
from flows.parameters import RewardProfilingParams
from flows.plain_log import leave_out_tracebacks
from flows.rounds import collect_rounds
from flows.run_name import run_name, scheduled_start
from flows.shards import check_spread
from flows.tagging import untagged_steps
from tasks.adapters.output_lock import output_lock
from tasks.adapters.run_directory import RunFiles
from tasks.aggregate_metrics import aggregate_metrics
from tasks.compare_with_baseline import compare_with_baseline
from tasks.core.models import RunSummary, ShardSummary
from tasks.derive_insights import derive_insights
from tasks.materialize_inputs import materialize_inputs
from tasks.operations.adapting import wants_more
from tasks.operations.materializing import check_input
from tasks.operations.serving import serving
from tasks.operations.settling import owes_nothing
from tasks.operations.stopping import exit_code_of_signal, stop_on_signals
from tasks.profile_rewards import profile_rewards
from tasks.publish_profile import publish_profile
from tasks.run_page import servers_observer, tell, tell_end, tell_page
from tasks.start_servers import start_servers


@model_flow(name="reward-profiling", flow_run_name=run_name)
async def reward_profiling(params: RewardProfilingParams) -> State[RunSummary]:
    """Profile the rewards of a task file on NeMo Gym environments."""
    leave_out_tracebacks()
    tell_page()
    with untagged_steps(), stop_on_signals(), outlasting_its_worker():
        try:
            summary = await profiled(params.at(scheduled_start()))
        except CUT_SHORT:
            if (state := await stopped_state()) is None:
                raise
            return state
        return await final_state(summary, params.profile.strict)


async def profiled(params: RewardProfilingParams) -> RunSummary:
    """Do what is owed for an output, and say what there is."""
    files = RunFiles(params.output)
    checked = check_input(params.input_path, params.plan)  # before anything starts
    await check_spread(params.spread)
    shards: list[ShardSummary] = []
    with output_lock(files.lock):
        is_over = not wants_more(files, params.adaptive, params.profile)
        if is_over and owes_nothing(checked, files, params.collect):
            tell("nothing to do: every planned rollout is collected or given up")
        else:
            async with serving(params.servers, files, servers_observer()) as head_url:
                servers = await start_servers(head_url, params.servers.start_timeout)
                await materialize_inputs(
                    params.input_path, params.output, params.plan, servers
                )
                shards = await collect_rounds(params, servers)
                if exit_code_of_signal() is None:  # else servers are let go at once
                    await aggregate_metrics(params.output, servers, params.aggregate)
        summary = await profile_rewards(params.output, params.profile, shards)
        summary = await derive_insights(summary, params.profile)
        if params.comparison.baseline is not None:
            summary = await compare_with_baseline(
                summary, params.comparison, params.profile.pass_threshold
            )
        tell_end(summary)
        await publish_profile(summary)
    return summary
