"""Locks between processes, and between machines that share only a folder."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import pytest

from reward_profiling.collecting.collection_lock import collection_lock
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import OutputLockedError
from reward_profiling.files.locking.lock_holder import ask_to_stop, living_holder, pulse
from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles

HOLD = """
import sys
from pathlib import Path
from reward_profiling.collecting.collection_lock import collection_lock
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.files.run_files import RunFiles
files, shard = RunFiles(Path(sys.argv[1])), sys.argv[2]
with collection_lock(files, CollectOptions(shard=shard or None)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(tmp_path / "r.jsonl")


@contextmanager
def held(files: RunFiles, shard: str = "") -> Iterator[subprocess.Popen[str]]:
    """Have another process hold an output, or one shard of it."""
    line = [sys.executable, "-c", HOLD, str(files.rollouts), shard]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def of_another_machine(path: Path, *, silent: float, lease: float = 60.0) -> None:
    """Leave the lock file of a process that we see only by what it wrote and when."""
    holder = {
        "pid": 7, "host": "other", "machine": "of-the-other", "started": "2026-01-01",
        "token": "t", "lease_seconds": lease,
    }  # fmt: skip
    path.write_bytes(orjson.dumps(holder))
    moment = time.time() - silent
    os.utime(path, (moment, moment))


def shard_lock(files: RunFiles, shard: str) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(collection_lock(files, CollectOptions(shard=shard or None)))
    return stack


def test_a_second_writer_is_refused(files: RunFiles) -> None:
    with (
        held(files) as child,
        pytest.raises(OutputLockedError, match=f"pid {child.pid} on "),
        output_lock(files.lock),
    ):
        pass


def test_a_dead_local_owner_blocks_nobody(files: RunFiles) -> None:
    with held(files) as child:
        child.kill()
        child.wait()

    with output_lock(files.lock):
        assert files.lock.exists()
    assert not files.lock.exists()


def test_a_remote_owner_blocks_while_alive(
    files: RunFiles,
) -> None:
    of_another_machine(files.lock, silent=20)

    with (
        pytest.raises(
            OutputLockedError, match=r"pid 7 on other.* expires in (39|40) s"
        ),
        output_lock(files.lock),
    ):
        pass
    of_another_machine(files.lock, silent=61)
    with output_lock(files.lock) as holder:
        assert holder.pid == os.getpid()


def test_a_holder_renews_its_lease(files: RunFiles) -> None:
    with output_lock(files.lock, lease_seconds=0.3):
        first = pulse(files.lock)
        time.sleep(0.4)
        second = pulse(files.lock)

    assert first is not None
    assert second is not None
    assert first.holder == second.holder
    assert second.changed_ns > first.changed_ns


def test_shards_of_one_dealing_coexist(files: RunFiles) -> None:
    with held(files, "0/2"), shard_lock(files, "1/2"):
        pass


def test_another_dealings_shard_is_refused(
    files: RunFiles,
) -> None:
    with held(files, "0/3") as child:
        with pytest.raises(OutputLockedError) as caught:
            shard_lock(files, "0/2")
        told = str(caught.value)
        assert told.startswith(f"pid {child.pid} on ")
        assert "is collecting shard 0/3 of this output" in told

    shard_lock(files, "0/2").close()  # a dead one is in nobody's way


def test_another_dealing_is_seen_from_afar(
    files: RunFiles,
) -> None:
    of_another_machine(files.shard(1, 3).lock, silent=5)

    with pytest.raises(
        OutputLockedError, match=r"pid 7 on other.* is collecting shard 1/3"
    ):
        shard_lock(files, "0/2")


@pytest.mark.parametrize("held_alone", [True, False])
def test_an_output_excludes_its_shards(files: RunFiles, *, held_alone: bool) -> None:
    first, second = ("", "0/2") if held_alone else ("0/2", "")

    with held(files, first), pytest.raises(OutputLockedError):
        shard_lock(files, second)


def test_a_remote_shard_blocks_the_output(
    files: RunFiles,
) -> None:
    of_another_machine(files.shard(0, 2).lock, silent=5)

    with (
        pytest.raises(OutputLockedError, match="pid 7 on other"),
        output_lock(files.lock),
    ):
        pass


def test_a_stop_request_keeps_the_lock(files: RunFiles) -> None:
    with output_lock(files.lock) as holder:
        ask_to_stop(files.lock, "enough", is_failure=True)
        ask_to_stop(files.lock, "too late: the first word counts", is_failure=False)
        told = living_holder(files.lock)

    assert told is not None
    assert (told.token, told.stop, told.is_failure) == (holder.token, "enough", True)


def test_merging_leaves_a_shard_in_progress(files: RunFiles) -> None:
    for index in (0, 1):
        files.shard(index, 2).rollouts.write_bytes(
            b'{"_ng_task_index":0,"_ng_rollout_index":%d,"reward":1}\n' % index
        )
    of_another_machine(files.shard(1, 2).lock, silent=5)

    summary = merge_shards(files)

    assert (summary.merged, summary.busy_shards) == (1, ("1/2",))
    assert summary.missing_shards == ()
    assert not files.shard(0, 2).rollouts.exists()
    assert files.shard(1, 2).rollouts.exists()
