"""Shards as steps on a cluster: Dask, Ray or Slurm, by Prefect's task runners.

The packages are imported on first use. Their calls block, so each runs in a thread.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.errors import RewardProfilingError
from reward_profiling.flows.spreading.led_shards import STOP_SECONDS, LedShards
from reward_profiling.tasks.collect_led_shard import collect_led_shard
from reward_profiling.tasks.shared.prefect_internals import start_runner
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import tell_warning

_RAY_STORE_BYTES = 100_000_000
"""What crosses are paths and small models."""


async def collect_on_cluster(led: LedShards) -> list[ShardSummary]:
    """Collect every shard of a run as a step on its cluster.

    Raises:
        RewardProfilingError: not one of them could begin.
    """
    async with _running(led) as submit:
        ended = await asyncio.gather(*(_collect(led, i, submit) for i in led.indices))
    errors = [one for one in ended if isinstance(one, RewardProfilingError)]
    if len(errors) == len(ended) and led.stop is None:
        raise errors[0]
    return [
        one
        if isinstance(one, ShardSummary)
        else led.uncollected(index, None if led.stop else str(one), failed=True)
        for index, one in enumerate(ended)
    ]


Submit = Callable[[int], Any]
"""Submits a shard, by its index; gives its future, as Prefect's runners have them."""


@asynccontextmanager
async def _running(led: LedShards) -> AsyncIterator[Submit]:
    """Yield a way to submit shards; a cluster that is made here ends with the block."""
    runner = await asyncio.to_thread(_RUNNERS[led.spread.runner], led)
    await asyncio.to_thread(start_runner, runner)
    present_run().scope.hear_signals_again()

    def submit(index: int) -> Any:  # noqa: ANN401 - each runner has its own futures
        parameters = {
            "files": led.files,
            "index": index,
            "options": led.options,
            "servers": led.servers,
            "leader": led.leader,
        }
        return runner.submit(collect_led_shard, parameters=parameters)

    try:
        yield submit
    finally:
        await asyncio.to_thread(runner.__exit__, None, None, None)


async def _collect(
    led: LedShards, index: int, submit: Submit
) -> ShardSummary | RewardProfilingError | None:
    """Collect one shard, again if its process died; None if the run stops first."""
    starts_left = led.spread.shard_restarts
    while True:
        future = await asyncio.to_thread(submit, index)
        ended = await _result(led, future)
        if ended is None or isinstance(ended, ShardSummary | RewardProfilingError):
            return ended
        said = f"{led.name(index)} died: {type(ended).__name__}: {ended}"
        if isinstance(ended.__cause__, RewardProfilingError):
            return ended.__cause__
        if not starts_left or led.stop is not None:
            return RewardProfilingError(f"{said}; no restarts left")
        starts_left -= 1
        tell_warning(f"{said}; restarting it, {starts_left} restarts left")


async def _result(
    led: LedShards,
    future: Any,  # noqa: ANN401
) -> ShardSummary | BaseException | None:
    """Wait for a shard's end; a run that stops waits no longer than it must."""
    # Each wait has a thread of its own: there may be more shards than threads in the
    # loop's own pool.
    waiter = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    ending = asyncio.ensure_future(loop.run_in_executor(waiter, future.result))
    stopping = asyncio.ensure_future(led.is_stopping.wait())
    try:
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({ending}, timeout=STOP_SECONDS)
        if not ending.done():
            return None
        ended: list[ShardSummary | BaseException]
        ended = await asyncio.gather(ending, return_exceptions=True)
        return ended[0]
    finally:
        stopping.cancel()
        waiter.shutdown(wait=False)


def _dask(led: LedShards) -> Any:  # noqa: ANN401 - not installed everywhere
    make = import_module("prefect_dask").DaskTaskRunner
    settings = led.spread.runner_settings
    if led.spread.runner_address is not None:
        return make(address=led.spread.runner_address, client_kwargs=settings)
    processes = min(len(led.indices), os.cpu_count() or 1)
    own = {
        "n_workers": processes,
        # Shards mostly wait for servers, so all of them can run at the same time.
        "threads_per_worker": -(-len(led.indices) // processes),
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": "ERROR",
    }
    return make(cluster_kwargs={**own, **settings})


def _ray(led: LedShards) -> Any:  # noqa: ANN401
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    make = import_module("prefect_ray").RayTaskRunner
    settings = led.spread.runner_settings
    if led.spread.runner_address is not None:
        return make(address=led.spread.runner_address, init_kwargs=settings)
    own = {
        "num_cpus": len(led.indices),
        "include_dashboard": False,
        "logging_level": "ERROR",
        "object_store_memory": _RAY_STORE_BYTES,
    }
    return make(init_kwargs={**own, **settings})


def _slurm(led: LedShards) -> Any:  # noqa: ANN401
    make = import_module("prefect_submitit").SlurmTaskRunner
    logs = led.files.rollouts.with_name(f"{led.files.rollouts.stem}_slurm_logs")
    return make(**{"log_folder": str(logs), **led.spread.runner_settings})


_RUNNERS: dict[str, Callable[[LedShards], Any]] = {
    "dask": _dask,
    "ray": _ray,
    "slurm": _slurm,
}
