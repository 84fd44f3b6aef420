"""A shard collected in a process of its own, for a run that may be on another machine.

It goes on as long as that run holds the output's lock, and stops in good order when the
lock says so, goes to another, or is not renewed. So a run that is cancelled or killed
leaves no shard behind, whatever the cluster or Prefect's server know of it.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from reward_profiling.collecting.on_disk.shard_summaries import leave_summary
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_collection import collect_shard, open_shard
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.collecting.window import Observer
from reward_profiling.errors import OutputLockedError, ServersNotReadyError
from reward_profiling.files.lock_holder import Holder, living_holder
from reward_profiling.files.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.stop_scope import Cause, exit_code_of_signal, may_ask_to_stop

_LOOK_SECONDS = 1.0
_READY_SECONDS = 60.0
"""How long servers that the run has found ready may not answer here."""
_AWAY_SECONDS = 5.0
"""How long the lock may seem not to be held: a network folder has such moments."""


async def collect_led_shard(
    files: RunFiles,
    options: CollectOptions,
    head_url: str,
    leader: Leader,
    observe: Observer,
) -> ShardSummary:
    """Collect the one shard of `options`, and leave its summary beside its records.

    Raises:
        OutputLockedError: the run is gone, or another process has the shard.
        ServersNotReadyError: this machine does not reach the servers.
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan cannot be read.
    """
    index, count = options.shard_of
    own = files.shard(index, count)
    async with _led(files, own, leader):
        try:
            servers = await wait_until_ready(head_url, _READY_SECONDS)
        except ServersNotReadyError as error:
            raise ServersNotReadyError(
                f"{socket.gethostname()} does not reach the servers that the run"
                f" reaches: {error}"
            ) from error
        shard = open_shard(files, index, count, options)
        summary = await collect_shard(shard, servers, options, observe)
        if exit_code_of_signal() is None:  # else this process was told to die early
            leave_summary(own, summary)
        return summary


@asynccontextmanager
async def _led(files: RunFiles, own: RunFiles, leader: Leader) -> AsyncIterator[None]:
    """Hold the shard while its run holds the output; end what runs when it does not."""
    with ExitStack() as stack:
        await _hold(stack, own, leader)
        if (cause := _stop_cause(living_holder(files.lock), leader)) is not None:
            raise OutputLockedError(cause.reason)
        watching = asyncio.create_task(_watch(files, leader))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _hold(stack: ExitStack, own: RunFiles, leader: Leader) -> None:
    """Take the shard's lock; a holder that died on another machine is waited for.

    Raises:
        OutputLockedError: its holder lives.
    """
    deadline = time.monotonic() + leader.silence_seconds + _LOOK_SECONDS
    lock = output_lock(own.lock, lease_seconds=leader.silence_seconds, is_led=True)
    while True:
        try:
            stack.enter_context(lock)
        except OutputLockedError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_LOOK_SECONDS)
            lock = output_lock(
                own.lock, lease_seconds=leader.silence_seconds, is_led=True
            )
        else:
            return


def _stop_cause(holder: Holder | None, leader: Leader) -> Cause | None:
    """Return why the shard is to stop; None to go on."""
    if holder is None or holder.token != leader.token:
        return Cause("the run that this shard belongs to is gone", is_failure=False)
    if holder.stop is not None:
        return Cause(holder.stop, is_failure=holder.is_failure)
    return None


async def _watch(files: RunFiles, leader: Leader) -> None:
    """Wait until the run is gone, or wants the shard to stop; then stop it."""
    last_seen = time.monotonic()
    cause: Cause | None = None
    while cause is None:
        await asyncio.sleep(_LOOK_SECONDS)
        holder = await asyncio.to_thread(living_holder, files.lock)
        if holder is not None:
            last_seen = time.monotonic()
        if holder is not None or time.monotonic() - last_seen > _AWAY_SECONDS:
            cause = _stop_cause(holder, leader)
    with may_ask_to_stop(is_failure=cause.is_failure) as stop:
        stop(cause.reason)
        await asyncio.Event().wait()  # the reason stands until the shard has ended
