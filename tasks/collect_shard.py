"""Step: collects one shard's owed rollouts."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.collecting import shard_collection
from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import progress_observer, tell


@task(
    name="collect-shard",
    task_run_name="collect shard {index} of {options.num_shards}",
    cache_policy=NO_CACHE,
)
async def collect_shard(
    files: RunFiles, index: int, options: CollectOptions, servers: Servers
) -> ShardSummary:
    """Collect what shard `index` (0-based) owes, in the run's own process.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
    """
    if index == 0:
        tell(f"collecting with at most {options.concurrency} rollouts in flight")
    async with progress_observer(f"collect-shard-{index}", files.rollouts) as observe:
        shard = open_shard(files, index, options.num_shards, options)
        scope = present_run().scope
        return await shard_collection.collect_shard(
            shard, servers, options, scope, observe
        )
