"""Step: collects one shard's owed rollouts outside the run's process.

Only names are sent there: each machine looks up the servers itself.
"""

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.led_shard import LedShard
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import progress_observer, tell


@task(
    name="collect-shard",
    task_run_name="collect shard {index} of {options.num_shards}",
    cache_policy=NO_CACHE,
)
async def collect_led_shard(
    files: RunFiles,
    index: int,
    options: CollectOptions,
    servers: ReadyServers,
    leader: Leader,
) -> ShardSummary:
    """Collect what shard `index` (0-based) owes, for the run that leads it.

    Raises:
        OutputLockedError: the run is gone, or another process has the shard.
        ServersNotReadyError: this machine does not reach the servers.
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
    """
    if index == 0:
        tell(f"collecting with at most {options.concurrency} rollouts in flight")
    shard = LedShard(files, options.of_shard(index), leader, present_run().scope)
    async with progress_observer(f"collect-shard-{index}", files.rollouts) as observe:
        return await shard.collect(servers.head_url, observe)
