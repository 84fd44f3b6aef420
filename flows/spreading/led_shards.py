"""How a run leads shards that are collected elsewhere, by any runner.

Each shard watches the file of the output's lock, where the run writes its command:
continue, or stop cleanly. A lock that is not renewed means that the run is gone.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from reward_profiling.collecting.on_disk.shard_summaries import drop_summary
from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Leader, SpreadOptions
from reward_profiling.collecting.window.stop_rules import Stop
from reward_profiling.errors import OutputLockedError
from reward_profiling.files.line_counts import LineCount
from reward_profiling.files.locking.lock_holder import ask_to_stop, pulse
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.ready_servers import ReadyServers
from reward_profiling.servers.routes import Servers
from reward_profiling.stop_scope import Cause, helped_by
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import tell, tell_warning

STOP_SECONDS = 10.0
"""How long the run waits for shards after telling them to stop."""
TELL_SECONDS = 30.0
_LOOPBACK = ("localhost", "::1")


@dataclass(slots=True)
class LedShards:
    """The shards of one run, which are collected elsewhere."""

    files: RunFiles
    options: CollectOptions
    spread: SpreadOptions
    servers: ReadyServers
    leader: Leader
    is_stopping: asyncio.Event = field(default_factory=asyncio.Event)
    stop: Stop | None = None
    _finished: list[LineCount] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        files: RunFiles,
        options: CollectOptions,
        servers: Servers,
        spread: SpreadOptions,
    ) -> Self:
        """Take the lead over the shards of an output whose lock this process holds.

        Raises:
            OutputLockedError: it holds none.
        """
        files = RunFiles(files.rollouts.absolute())  # as other processes see them
        beat = pulse(files.lock)
        if beat is None:
            raise OutputLockedError(f"{files.lock} is not held by this run")
        silence = spread.shard_silence
        leader = Leader(token=beat.holder.token, silence_seconds=silence)
        led = cls(files, options, spread, _names(servers), leader)
        for index in led.indices:
            drop_summary(led.own(index))
            led._finished.append(LineCount(led.own(index).timings))
        return led

    @property
    def indices(self) -> range:
        """The shards by their index."""
        return range(self.options.num_shards)

    def own(self, index: int) -> RunFiles:
        """Return the files of one shard."""
        return self.files.shard(index, self.options.num_shards)

    def name(self, index: int) -> str:
        """Name a shard in a sentence."""
        return f"shard {index} of {self.options.num_shards}"

    @asynccontextmanager
    async def until_ended(self) -> AsyncIterator[None]:
        """Lead while the block runs; a signal, or the time budget, stops the shards.

        After the block no shard can start, so their files can be merged.
        """
        if _is_loopback(self.servers.head_url) and self._may_be_remote:
            tell_warning(
                f"only this machine reaches the servers at {self.servers.head_url}, so"
                " shards on other machines will fail. Start the servers where every"
                " machine reaches them, and give that address with --head-url"
            )
        helpers = [self._tell_for_ever()]
        if self.options.time_budget is not None:
            helpers.append(self._stop_in_time())
        try:
            async with helped_by(*helpers):
                with present_run().scope.on_stop(self._stop_for):
                    yield
        finally:
            self._say("the collection of this run has ended", is_failure=False)
            for index in self.indices:
                drop_summary(self.own(index))

    @property
    def _may_be_remote(self) -> bool:
        is_local_cluster = self.spread.runner in {"dask", "ray"}
        return not is_local_cluster or self.spread.runner_address is not None

    def uncollected(
        self, index: int, reason: str | None, *, failed: bool
    ) -> ShardSummary:
        """Return the summary of a shard that left none, from its files."""
        count = self.options.num_shards
        shard = open_shard(self.files, index, count, self.options, mends=False)
        if reason is None or not shard.owed:
            return shard.not_collected(self.stop if shard.owed else None)
        return shard.not_collected(Stop(reason, 0.0, is_failure=failed))

    def _stop_for(self, cause: Cause) -> None:
        if self.stop is None:
            self.stop = Stop(cause.reason, STOP_SECONDS, is_failure=cause.is_failure)
            self._say(cause.reason, is_failure=cause.is_failure)
            self.is_stopping.set()

    def _say(self, reason: str, *, is_failure: bool) -> None:
        ask_to_stop(self.files.lock, reason, is_failure=is_failure)

    async def _stop_in_time(self) -> None:
        seconds = self.options.time_budget or 0.0
        await asyncio.sleep(seconds)
        reason = f"the time budget of {seconds:g} s is used up"
        self._stop_for(Cause(reason, is_failure=False))

    async def _tell_for_ever(self) -> None:
        started, told = time.monotonic(), 0
        while True:
            await asyncio.sleep(TELL_SECONDS)
            finished = sum(
                [await asyncio.to_thread(one.look) for one in self._finished]
            )
            if finished > told:
                minutes = (time.monotonic() - started) / 60
                tell(f"{finished} rollouts of all shards finished in {minutes:.1f} min")
                told = finished


def _names(servers: Servers) -> ReadyServers:
    """Return the servers without what must stay on this machine."""
    return ReadyServers(
        head_url=servers.head_url,
        agents=tuple(servers.agents),
        policy_model=servers.policy_model,
        assignment=servers.assignment,
    )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in _LOOPBACK or host.startswith("127.")
