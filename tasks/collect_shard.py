"""Step: one shard's owed rollouts become records."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.adapters.run_directory import RunFiles
from tasks.core.models import ReadyServers, ShardSummary
from tasks.core.options import CollectOptions
from tasks.operations import collecting
from tasks.run_page import progress_observer, tell


@task(
    name="collect-shard",
    task_run_name="collect shard {index} of {options.num_shards}",
    cache_policy=NO_CACHE,
)
async def collect_shard(
    output: Path, index: int, options: CollectOptions, servers: ReadyServers
) -> ShardSummary:
    """Collect what shard `index` (0-based) owes.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
    """
    files = RunFiles(output)
    known = await collecting.read_servers(servers.head_url)
    shard = collecting.open_shard(files, index, options.num_shards, options)
    if index == 0:
        tell(f"collecting with at most {options.concurrency} rollouts in flight")
    async with progress_observer(f"collect-shard-{index}") as observe:
        return await collecting.collect_shard(shard, known, options, observe)
