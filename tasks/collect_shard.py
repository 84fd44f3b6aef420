"""Step: one shard's owed rollouts become records."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.collecting import shard_collection
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.led_shard import collect_led_shard
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.tasks.run_page import progress_observer, tell


@task(
    name="collect-shard",
    task_run_name="collect shard {index} of {options.num_shards}",
    cache_policy=NO_CACHE,
)
async def collect_shard(
    output: Path,
    index: int,
    options: CollectOptions,
    servers: ReadyServers,
    leader: Leader | None = None,
) -> ShardSummary:
    """Collect what shard `index` (0-based) owes; here, or elsewhere for a `leader`.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
    """
    files = RunFiles(output)
    if index == 0:
        tell(f"collecting with at most {options.concurrency} rollouts in flight")
    async with progress_observer(f"collect-shard-{index}") as observe:
        if leader is not None:
            own, url = options.of_shard(index), servers.head_url
            return await collect_led_shard(files, own, url, leader, observe)
        known = await shard_collection.read_servers(servers.head_url)
        shard = shard_collection.open_shard(files, index, options.num_shards, options)
        return await shard_collection.collect_shard(shard, known, options, observe)
