"""Collects a plan, and goes on with more repeats of open tasks where that is asked."""

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.shards import collect_shards
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.stop_scope import exit_code_of_signal
from reward_profiling.tasks.grow_plan import grow_plan
from reward_profiling.tasks.merge_shards import merge_shards

Shards = list[ShardSummary]
"""What each shard came to, in order of index."""


async def collect_rounds(
    params: RewardProfilingParams, servers: ReadyServers
) -> Shards:
    """Collect what is owed and merge it, a round at a time; return the last shards.

    Without adaptive repeats there is one round. A collection that ended early is the
    last one, too: what it owes comes first when the run is started again.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan or a shard's file cannot be read.
        RewardProfilingError: not one of the shards that run elsewhere could begin.
    """
    while True:
        shards = await collect_shards(
            params.output, params.collect, servers, params.spread
        )
        if RunFiles(params.output).shards():  # of this run, or of one that was killed
            await merge_shards(params.output, shards)
        is_stopped = any(shard.stopped for shard in shards)
        if not params.adaptive.adaptive or is_stopped or exit_code_of_signal():
            return shards
        grown = await grow_plan(params.output, params.adaptive, params.profile)
        if not grown.num_new:
            return shards
