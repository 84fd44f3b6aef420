"""A shard collected in its own process, for a run that may be on another machine.

It continues as long as that run holds the output's lock, and stops cleanly when the
lock says so, changes hands, or is not renewed. So a cancelled or killed run leaves no
shard behind, whatever the cluster or Prefect's server knows about it.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from reward_profiling.collecting.on_disk.shard_summaries import leave_summary
from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import ObserveProgress
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.errors import OutputLockedError, ServersNotReadyError
from reward_profiling.files.locking.lock_holder import Holder, living_holder
from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.servers.routes import Servers
from reward_profiling.stop_scope import Cause, StopScope, helped_by

_LOOK_SECONDS = 1.0
_READY_SECONDS = 60.0
"""How long servers that the run has found ready may not answer here."""
_AWAY_SECONDS = 5.0
"""How long the lock may seem not to be held: a network folder has such moments."""


@dataclass(frozen=True, slots=True)
class LedShard:
    """One shard, and the run that it is collected for."""

    files: RunFiles
    """Of the whole output."""
    options: CollectOptions
    """Of the one shard (`CollectOptions.of_shard`)."""
    leader: Leader
    scope: StopScope

    @property
    def own(self) -> RunFiles:
        """The shard's own files."""
        return self.files.shard(*self.options.shard_of)

    async def collect(self, head_url: str, observe: ObserveProgress) -> ShardSummary:
        """Collect what it owes, and leave its summary beside its records.

        Raises:
            OutputLockedError: the run is gone, or another process has the shard.
            ServersNotReadyError: this machine does not reach the servers.
            ConfigError: there is no plan, or it names unknown agents.
            RecordError: the plan cannot be read.
        """
        async with self._held():
            servers = await _reached(head_url)
            shard = open_shard(self.files, *self.options.shard_of, self.options)
            summary = await collect_shard(
                shard, servers, self.options, self.scope, observe
            )
            if self.scope.exit_code is None:  # else this process was told to die early
                leave_summary(self.own, summary)
            return summary

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        """Hold the shard while its run holds the output; end it when that does not."""
        with ExitStack() as stack:
            await self._hold(stack)
            if (cause := self._stop_cause(living_holder(self.files.lock))) is not None:
                raise OutputLockedError(cause.reason)
            async with helped_by(self._watch()):
                yield

    async def _hold(self, stack: ExitStack) -> None:
        """Take the shard's lock; a holder that died on another machine is waited for.

        Raises:
            OutputLockedError: its holder lives.
        """
        silence = self.leader.silence_seconds
        deadline = time.monotonic() + silence + _LOOK_SECONDS
        while True:
            lock = output_lock(self.own.lock, lease_seconds=silence, is_led=True)
            try:
                stack.enter_context(lock)
            except OutputLockedError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                return

    def _stop_cause(self, holder: Holder | None) -> Cause | None:
        """Return why the shard is to stop; None to go on."""
        if holder is None or holder.token != self.leader.token:
            return Cause("the run that this shard belongs to is gone", is_failure=False)
        if holder.stop is not None:
            return Cause(holder.stop, is_failure=holder.is_failure)
        return None

    async def _watch(self) -> None:
        """Wait until the run is gone, or wants the shard to stop; then stop it."""
        last_seen = time.monotonic()
        cause: Cause | None = None
        while cause is None:
            await asyncio.sleep(_LOOK_SECONDS)
            holder = await asyncio.to_thread(living_holder, self.files.lock)
            if holder is not None:
                last_seen = time.monotonic()
            if holder is not None or time.monotonic() - last_seen > _AWAY_SECONDS:
                cause = self._stop_cause(holder)
        with self.scope.may_ask_to_stop(is_failure=cause.is_failure) as stop:
            stop(cause.reason)
            await asyncio.Event().wait()  # the reason stands until the shard has ended


async def _reached(head_url: str) -> Servers:
    """Return the servers, which the run has found ready, as this machine sees them.

    Raises:
        ServersNotReadyError: it does not reach them.
    """
    try:
        return await wait_until_ready(head_url, _READY_SECONDS)
    except ServersNotReadyError as error:
        raise ServersNotReadyError(
            f"{socket.gethostname()} does not reach the servers of the run: {error};"
            " give an address that every machine reaches as --head-url"
        ) from error
