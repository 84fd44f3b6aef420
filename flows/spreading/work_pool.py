"""Shards as runs of a deployment, on the workers of its work pool, on any machine.

The shared folder says whether a shard has ended; Prefect's server also says whether it
waits or died. If that server is down, the shards and the run continue.
"""

import asyncio
import time
from collections.abc import Iterator
from uuid import UUID

import httpx
import orjson
from prefect import get_client
from prefect.artifacts import acreate_table_artifact
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import PrefectException
from prefect.states import Cancelled, Cancelling, Crashed

from reward_profiling.collecting.on_disk.shard_summaries import (
    found_summary,
)
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Fate, fate
from reward_profiling.errors import ServersNotReadyError
from reward_profiling.files.locking.lock_holder import living_holder
from reward_profiling.flows.spreading.led_shards import STOP_SECONDS, LedShards
from reward_profiling.flows.spreading.pool_runs import (
    page_url,
    progress_of,
    states_of,
    submit,
    workers_of,
)
from reward_profiling.flows.spreading.pool_shard import PoolShard
from reward_profiling.reporting.artifact_keys import artifact_key
from reward_profiling.reporting.markdown import escaped
from reward_profiling.reporting.outcome import shortened
from reward_profiling.stop_scope import helped_by
from reward_profiling.tasks.shared.run_page import (
    REPORT_SECONDS,
    dropped_when_away,
    tell,
    tell_warning,
)

_POLL_SECONDS = 2.0
_LATE_SECONDS = 30.0
"""After this long without a worker, the run logs it."""
_MAX_ROWS = 200
_MOST_WORDS = 200
"""Characters of a run's message that are repeated."""
_AWAY = (httpx.HTTPError, OSError, PrefectException)


async def collect_on_pool(led: LedShards) -> list[ShardSummary]:
    """Collect every shard of a run by the workers of its deployment's work pool.

    Raises:
        ServersNotReadyError: not one of them could begin.
    """
    async with get_client() as client:
        return await _Pool(led, client).collect()


class _Pool:
    """The shards of one run while workers collect them."""

    def __init__(self, led: LedShards, client: PrefectClient) -> None:
        self._led = led
        self._client = client
        self._shards = [PoolShard(index, led.own(index)) for index in led.indices]
        self._broken: list[str] = []
        self._is_away_told = False
        self._table: UUID | None = None

    async def collect(self) -> list[ShardSummary]:
        """Submit every shard, again if its worker died, until all have ended."""
        tell(
            f"{len(self._shards)} shards are waiting for workers, as runs of the"
            f" deployment {self._led.spread.shard_deployment}"
        )
        async with helped_by(self._report_for_ever()):
            while self._open and not self._led.is_stopping.is_set():
                await self._round()
                await self._pause()
            if self._open:
                await self._let_stop()
        await self._report()
        if len(self._broken) == len(self._shards):
            raise ServersNotReadyError(self._broken[0])
        return [shard.summary for shard in self._shards if shard.summary is not None]

    @property
    def _open(self) -> list[PoolShard]:
        return [shard for shard in self._shards if shard.summary is None]

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                await self._led.is_stopping.wait()
        except TimeoutError:
            return

    async def _round(self) -> None:
        """Submit shards without a run, check the others, and act on what they show."""
        try:
            await self._submit_and_see()
        except _AWAY as error:
            self._tell_away(error)
            for shard in self._open:
                shard.see(None)
        if any(shard.type == StateType.RUNNING for shard in self._open):
            for shard in self._open:
                if shard.type == StateType.SCHEDULED:
                    shard.since = time.monotonic()  # its turn will come
        for shard in self._open:
            await self._judge(shard)

    async def _submit_and_see(self) -> None:
        for shard in self._open:
            if shard.run_id is None:
                run = await submit(self._led, shard.index, shard.starts + 1)
                shard.starts += 1
                shard.run_id = run.id
        ids = [shard.run_id for shard in self._open if shard.run_id is not None]
        states = await states_of(self._client, ids)
        for shard in self._open:
            shard.see(states.get(shard.run_id) if shard.run_id else None)
        self._is_away_told = False

    def _tell_away(self, error: Exception) -> None:
        if not self._is_away_told:
            self._is_away_told = True
            tell_warning(
                f"cannot read the shards' state from Prefect's server ({error}); they"
                " continue, and the run watches their files"
            )

    async def _judge(self, shard: PoolShard) -> None:
        look, name = shard.look(), self._led.name(shard.index)
        end = fate(look, self._led.spread)
        if end is Fate.ENDED:
            shard.summary = found_summary(shard.own) or self._uncollected(shard, None)
        elif end is Fate.DEAD:
            how = f"was silent for {look.seconds:.0f} s"
            if look.state != StateType.RUNNING:
                words = shard.state and shard.state.message
                how = f"died ({shortened(words, _MOST_WORDS)})" if words else "died"
            await self._again(shard, Crashed(message=f"{name} {how}"))
        elif end is Fate.UNCLAIMED:
            said = f"no worker started {name} within {look.seconds:.0f} s"
            await self._again(shard, Cancelled(message=said))
        elif end is not Fate.WAIT:
            self._leave(shard, end)
        elif shard.is_waiting and look.seconds > _LATE_SECONDS:
            await self._tell_late(shard, look.seconds)

    async def _tell_late(self, shard: PoolShard, seconds: float) -> None:
        if shard.is_late_told:
            return
        shard.is_late_told = True
        name = self._led.name(shard.index)
        if shard.type == StateType.PENDING:
            tell_warning(f"a worker took {name} {seconds:.0f} s ago, without a start")
            return
        said = f"{name} has been waiting {seconds:.0f} s for a worker"
        async with dropped_when_away():
            deployment = self._led.spread.shard_deployment
            said += f": {await workers_of(self._client, deployment)}"
        tell_warning(said)

    def _leave(self, shard: PoolShard, end: Fate) -> None:
        """Give up on a shard whose run failed, or that a person cancelled."""
        name = self._led.name(shard.index)
        words = (shard.state and shard.state.message) or "it left no message"
        is_broken = end is Fate.BROKEN
        said = f"{name}: {words}" if is_broken else f"{name} was cancelled"
        tell_warning(f"{said}; its missing rollouts are still owed")
        if is_broken:
            self._broken.append(said)
        shard.summary = self._uncollected(shard, said, failed=is_broken)

    async def _again(self, shard: PoolShard, end: State) -> None:
        """Restart a shard, unless it has no restarts left."""
        most = self._led.spread.shard_restarts + 1
        await self._set_state(shard, end)
        if shard.starts < most:
            tell_warning(
                f"{end.message}; restarting it, start {shard.starts + 1} of at most"
                f" {most}"
            )
            shard.again()
            return
        said = f"{end.message}, in all {most} starts; no restarts left"
        tell_warning(said)
        shard.summary = self._uncollected(shard, said, failed=True)

    async def _set_state(self, shard: PoolShard, state: State) -> None:
        """Show on the page of a shard's run how it ended."""
        if shard.run_id is None or (shard.state and shard.state.is_final()):
            return
        async with dropped_when_away():
            await self._client.set_flow_run_state(shard.run_id, state, force=True)

    def _uncollected(
        self, shard: PoolShard, reason: str | None, *, failed: bool = False
    ) -> ShardSummary:
        return self._led.uncollected(shard.index, reason, failed=failed)

    async def _let_stop(self) -> None:
        """Wait for shards that were told to stop; cancel those that do not."""
        for shard in self._open:
            # Check its lock, too: the server reports a start with some delay.
            if shard.is_waiting and living_holder(shard.own.lock) is None:
                await self._set_state(shard, Cancelled(message="its run was stopped"))
                shard.summary = self._uncollected(shard, None)
        deadline = time.monotonic() + STOP_SECONDS
        while self._open and time.monotonic() < deadline:
            await asyncio.sleep(0.25)
            for shard in self._open:
                shard.summary = found_summary(shard.own)
        for shard in self._open:
            await self._set_state(shard, Cancelling(message="its run was stopped"))
            shard.summary = self._uncollected(shard, None)

    async def _report_for_ever(self) -> None:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            await self._report()

    async def _report(self) -> None:
        """Show the state of the shards on the run's page."""
        async with dropped_when_away():
            ids = [shard.run_id for shard in self._shards if shard.run_id is not None]
            progress = await progress_of(self._client, ids)
            rows = list(self._rows(progress))[:_MAX_ROWS]
            said = escaped(self._headline())
            if self._table is None:
                key = artifact_key("collect-shards", self._led.files.rollouts)
                self._table = await acreate_table_artifact(
                    rows, key=key, description=said
                )
            else:
                data = orjson.dumps(rows).decode()
                told = ArtifactUpdate(data=data, description=said)
                await self._client.update_artifact(self._table, told)

    def _headline(self) -> str:
        ended = len(self._shards) - len(self._open)
        at_work = sum(shard.type == StateType.RUNNING for shard in self._open)
        return (
            f"{ended} of {len(self._shards)} shards ended, {at_work} running,"
            f" {len(self._open) - at_work} waiting"
        )

    def _rows(self, progress: dict[UUID, str]) -> Iterator[dict[str, str | int]]:
        for shard in self._shards:
            run = shard.run_id
            yield {
                "shard": shard.index,
                "state": "ended" if shard.summary else shard.type.lower(),
                "starts": shard.starts,
                "progress": progress.get(run, "") if run else "",
                "run": page_url(run) if run else "",
            }
