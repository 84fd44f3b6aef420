"""The workflow: servers → plan → rollouts → metrics → profile → page.

The files beside the output say what is owed, so running it again does only the rest.
Prefect runs the steps, but holds no state that a later run needs.
"""

from prefect.client.schemas.objects import State

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.conduct import conducted
from reward_profiling.flows.ending import CUT_SHORT, final_state, stopped_state
from reward_profiling.flows.orphans import close_orphans
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.rounds import collected, has_nothing_to_do
from reward_profiling.flows.run_name import run_name, scheduled_start
from reward_profiling.flows.spreading.spread_shards import check_spread
from reward_profiling.planning.checked_input import check_input
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.servers.allow_lists import check_output
from reward_profiling.servers.server_sessions import serving
from reward_profiling.tasks.aggregate_metrics import aggregate_metrics
from reward_profiling.tasks.compare_with_baseline import compare_with_baseline
from reward_profiling.tasks.derive_insights import derive_insights
from reward_profiling.tasks.materialize_inputs import materialize_inputs
from reward_profiling.tasks.profile_rewards import profile_rewards
from reward_profiling.tasks.publish_profile import publish_profile
from reward_profiling.tasks.shared.prefect_internals import (
    as_it_is,
    model_flow,
    untagged_steps,
)
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import servers_observer, tell, tell_end
from reward_profiling.tasks.start_servers import start_servers


@model_flow(name="reward-profiling", flow_run_name=run_name)
async def reward_profiling(params: RewardProfilingParams) -> State[RunSummary]:
    """Profile the rewards of a task file on NeMo Gym environments."""
    with conducted(), untagged_steps():
        params = params.at(scheduled_start())
        await close_orphans()
        try:
            summary = await profiled(params)
        except CUT_SHORT as cause:
            if (state := await stopped_state(params.output, cause)) is None:
                raise
            return state
        return await final_state(summary, params.profile.strict)


async def profiled(params: RewardProfilingParams) -> RunSummary:
    """Do what is owed for an output, and return its summary."""
    run, files, shards = present_run(), RunFiles(params.output), list[ShardSummary]()
    check_output(params.output)
    # Check before anything starts. The command line did so before Prefect started.
    checked = check_input(params.input_path, params.plan, run.checked)
    await check_spread(params.spread)
    with output_lock(files.lock):
        if has_nothing_to_do(params, files, checked):
            tell("nothing to do: every planned rollout is collected or given up")
        else:
            given = params.servers, files, run.scope, servers_observer()
            async with serving(*given) as head_url:
                servers = await start_servers(head_url, params.servers.start_timeout)
                await materialize_inputs(as_it_is(checked), files, servers)
                shards = await collected(params, files, servers)
                if run.scope.exit_code is None:  # else servers are let go at once
                    await aggregate_metrics(files, servers, params.aggregate)
        summary = await profile_rewards(files, params.profile, shards)
        summary = await derive_insights(summary, files, params.profile)
        if params.comparison.baseline is not None:
            summary = await compare_with_baseline(
                summary, files, params.comparison, params.profile.pass_threshold
            )
        tell_end(summary)
        await publish_profile(summary, files)
    return summary
