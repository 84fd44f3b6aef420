"""Starts the shards of a run and collects their summaries.

Only this module decides where a shard is collected.
"""

import asyncio

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import SpreadOptions
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.spreading.cluster import collect_on_cluster
from reward_profiling.flows.spreading.led_shards import LedShards
from reward_profiling.flows.spreading.pool_runs import check_deployment
from reward_profiling.flows.spreading.runner_extras import need_extra
from reward_profiling.flows.spreading.work_pool import collect_on_pool
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.collect_shard import collect_shard


async def check_spread(spread: SpreadOptions) -> None:
    """Check the runner before anything starts.

    Raises:
        ConfigError: an extra is not installed, or a deployment not registered.
    """
    need_extra(spread.runner)
    if spread.runner == "work-pool":
        await check_deployment(spread.shard_deployment)


async def collect_shards(
    files: RunFiles,
    options: CollectOptions,
    servers: Servers,
    spread: SpreadOptions,
) -> list[ShardSummary]:
    """Collect every shard of the plan, side by side; return them in order of index.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
        RewardProfilingError: not one of the shards that run elsewhere could begin.
    """
    if not spread.is_elsewhere:
        return await asyncio.gather(
            *(
                collect_shard(files, index, options, servers)
                for index in range(options.num_shards)
            )
        )
    led = LedShards.of(files, options, servers, spread)
    async with led.until_ended():
        if spread.runner == "work-pool":
            return await collect_on_pool(led)
        return await collect_on_cluster(led)
