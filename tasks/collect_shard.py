"""Step: one shard's owed rollouts become records."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import ReadyServers, ShardSummary
from tasks.core.options import CollectOptions
from tasks.core.spreading import Leader
from tasks.operations import collecting
from tasks.operations.led_shards import collect_led_shard
from tasks.run_page import progress_observer, tell


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
        known = await collecting.read_servers(servers.head_url)
        shard = collecting.open_shard(files, index, options.num_shards, options)
        return await collecting.collect_shard(shard, known, options, observe)
