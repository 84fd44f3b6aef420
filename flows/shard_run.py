"""The flow that a worker runs for another run: it collects one shard."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Crashed, Failed

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.conduct import conducted
from reward_profiling.flows.ending import is_being_cancelled
from reward_profiling.reporting.outcome import INTERRUPTED_STATE, PARTIAL_STATE
from reward_profiling.servers.allow_lists import check_output
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.stop_scope import StopScope
from reward_profiling.tasks.collect_led_shard import collect_led_shard
from reward_profiling.values import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardRun(Checked):
    """One shard, as its leading run gives it to a worker. Do not fill in by hand."""

    output: Path
    """The rollouts file; this machine sees it under the same path."""

    index: int
    """The shard, from 0."""

    collect: CollectOptions
    """How the whole run collects."""

    servers: ReadyServers
    """Servers that the run found ready."""

    leader: Leader
    """The run that waits for the shard."""


@flow(name="collect-shard")
async def shard_run(params: ShardRun) -> State[ShardSummary]:
    """Collect one shard for the run that started this one and waits for it."""
    with conducted() as run:
        check_output(params.output)
        try:
            summary = await collect_led_shard(
                RunFiles(params.output),
                params.index,
                params.collect,
                params.servers,
                params.leader,
            )
        except asyncio.CancelledError:
            if run.scope.exit_code is None or not await is_being_cancelled():
                raise
            return Cancelled(message="cancelled before the collection had begun")
        return await _state_of(summary, run.scope)


async def _state_of(summary: ShardSummary, scope: StopScope) -> State[ShardSummary]:
    done = summary.planned - summary.missing
    said = f"{done} of {summary.planned} rollouts collected"
    if summary.stopped:
        said += f": {summary.stopped}"
    if not summary.missing:
        return Completed(message=said, data=summary)
    if scope.exit_code is None:
        return Failed(name=PARTIAL_STATE, message=said, data=summary)
    if await is_being_cancelled():
        return Cancelled(message=said, data=summary)
    return Crashed(name=INTERRUPTED_STATE, message=said, data=summary)
