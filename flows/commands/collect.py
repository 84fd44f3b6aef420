"""`collect`: what a plan still owes, over HTTP and without Prefect."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.exit_codes import ExitCode
from flows.terminal import Live, err, out
from tasks.adapters.journal import output_lock
from tasks.adapters.run_directory import RunFiles
from tasks.core.models import CollectOptions, ShardSummary
from tasks.operations.collecting import collect_shard, open_shard
from tasks.operations.merging import merge_shards
from tasks.operations.serving import wait_until_ready
from tasks.operations.stopping import stop_on_signals

_COLLECT = CollectOptions()
_READY_SECONDS = 600.0


def collect(
    *,
    output: Path,
    head_url: str,
    options: Annotated[CollectOptions, Parameter(name="*")] = _COLLECT,
) -> int:
    """Collect what a plan still owes, from running servers.

    Args:
        output: The rollouts file; its plan lies beside it.
        head_url: Head server of the running servers, such as http://127.0.0.1:11000.
        options: How owed rollouts are collected.
    """
    files = RunFiles(output)
    with output_lock(files.lock):
        shards = asyncio.run(_collect(files, head_url.rstrip("/"), options))
    planned = sum(shard.planned for shard in shards)
    missing = sum(shard.missing for shard in shards)
    out.print(f"{planned - missing} of {planned} rollouts collected")
    out.print(f"  {output}", style="dim")
    return ExitCode.PARTIAL if missing else ExitCode.WHOLE


async def _collect(
    files: RunFiles, head_url: str, options: CollectOptions
) -> list[ShardSummary]:
    count = options.num_shards
    with stop_on_signals():
        opened = [open_shard(files, i, count, options) for i in range(count)]
        servers = await wait_until_ready(head_url, _READY_SECONDS, err.print)
        err.print(f"at most {options.concurrency} rollouts in flight", style="dim")
        live = Live()
        with live.showing():
            shards = await asyncio.gather(
                *(collect_shard(s, servers, options, live.observe) for s in opened)
            )
        merge_shards(files)
    return shards
