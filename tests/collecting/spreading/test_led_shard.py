"""A shard that a run elsewhere leads: it goes on and stops as the run's lock says."""

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import anyio
import httpx
import pytest

from reward_profiling.collecting.on_disk.shard_summaries import found_summary
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import silent
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.led_shard import LedShard
from reward_profiling.collecting.spreading.spread import Leader
from reward_profiling.errors import OutputLockedError, ServersNotReadyError
from reward_profiling.files.locking.lock_holder import Holder, ask_to_stop
from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.servers.options import EMBEDDED_TASKS
from reward_profiling.stop_scope import StopScope

OPTIONS = CollectOptions(num_shards=2, concurrency=8).of_shard(0)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output with 96 rollouts planned."""
    output = RunFiles(tmp_path / "r.jsonl")
    materialize(check_input(EMBEDDED_TASKS, PlanOptions(num_repeats=4)), output)
    return output


def leader_of(holder: Holder) -> Leader:
    return Leader(token=holder.token, silence_seconds=5)


async def collected(files: RunFiles, url: str, leader: Leader) -> ShardSummary:
    shard = LedShard(files, OPTIONS, leader, StopScope())
    return await shard.collect(url.rstrip("/"), silent)


def test_a_led_shard_leaves_a_summary(files: RunFiles, servers: httpx.Client) -> None:
    own = files.shard(0, 2)

    with output_lock(files.lock) as holder:
        summary = anyio.run(collected, files, str(servers.base_url), leader_of(holder))

    assert (summary.planned, summary.collected, summary.owed) == (48, 48, 0)
    assert found_summary(own) == summary
    assert own.rollouts.read_bytes().count(b"\n") == 48
    assert servers.get("/_knobs").json()["max_in_flight"] <= 4
    assert not own.lock.exists()


def let_go(stack: ExitStack, _: RunFiles) -> None:
    stack.close()


def taken_by_another(stack: ExitStack, files: RunFiles) -> None:
    stack.close()
    # Not waited for: shards that are led stop when they see it.
    files.lock.write_text('{"pid": 1, "host": "other", "machine": "m", "token": "no"}')


def told_to_stop(_: ExitStack, files: RunFiles) -> None:
    ask_to_stop(files.lock, "enough is enough", is_failure=True)


@pytest.mark.parametrize(
    ("end", "said", "is_failed"),
    [
        (let_go, "the run that this shard belongs to is gone", False),
        (taken_by_another, "the run that this shard belongs to is gone", False),
        (told_to_stop, "enough is enough", True),
    ],
)
def test_a_led_shard_stops_in_good_order(
    files: RunFiles,
    servers: httpx.Client,
    end: Callable[[ExitStack, RunFiles], None],
    said: str,
    *,
    is_failed: bool,
) -> None:
    servers.post("/_knobs", json={"latency_ms": 1000}).raise_for_status()

    async def run() -> tuple[ShardSummary, float]:
        with ExitStack() as stack:
            holder = stack.enter_context(output_lock(files.lock))
            url = str(servers.base_url)
            work = asyncio.create_task(collected(files, url, leader_of(holder)))
            await asyncio.sleep(2.5)
            end(stack, files)
            since = time.monotonic()
            return await work, time.monotonic() - since

    summary, seconds = anyio.run(run)

    assert (summary.stopped, summary.is_failed) == (said, is_failed)
    assert 0 < summary.collected < 48
    assert summary.collected == servers.get("/_knobs").json()["requests"]
    assert seconds < 12


def test_a_shard_without_a_run_starts_nothing(
    files: RunFiles, servers: httpx.Client
) -> None:
    gone = Leader(token="0", silence_seconds=5)  # noqa: S106 - no secret

    with pytest.raises(OutputLockedError, match="belongs to is gone"):
        anyio.run(collected, files, str(servers.base_url), gone)

    assert servers.get("/_knobs").json()["requests"] == 0


def test_a_machine_out_of_reach_says_so(files: RunFiles, servers: httpx.Client) -> None:
    elsewhere = f"{servers.base_url}elsewhere"

    with (
        output_lock(files.lock) as holder,
        pytest.raises(
            ServersNotReadyError, match="does not reach the servers of the run"
        ),
    ):
        anyio.run(collected, files, elsewhere, leader_of(holder))
