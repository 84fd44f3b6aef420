"""The fence of a lock that passed to others, is gone, or cannot be read just now."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

from reward_profiling.errors import LockLostError
from reward_profiling.files.locking.fence import Fence
from reward_profiling.files.locking.lock_holder import Holder
from reward_profiling.files.locking.output_lock import output_lock


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    """Give a lock that this process holds, whose fence looks at every check."""
    path = tmp_path / ".r.jsonl.lock"
    with output_lock(path, lease_seconds=0.0001):
        yield path


def test_a_lock_of_ones_own_may_be_written_under(lock: Path) -> None:
    Fence(lock).check()


def test_another_holder_ends_the_writing(lock: Path) -> None:
    fence = Fence(lock)
    lock.write_bytes(msgspec.json.encode(asdict(Holder(pid=7, host="elsewhere"))))

    with pytest.raises(LockLostError, match="passed to pid 7 on elsewhere"):
        fence.check()
    with pytest.raises(LockLostError):
        fence.check()


def test_a_lock_that_is_gone_ends_the_writing(lock: Path) -> None:
    fence = Fence(lock)
    lock.unlink()

    with pytest.raises(LockLostError, match="is gone"):
        fence.check()


def test_an_unreadable_lock_decides_nothing(lock: Path) -> None:
    fence = Fence(lock)
    known = lock.read_bytes()
    lock.write_bytes(b"")
    fence.check()
    lock.write_bytes(known)
    fence.check()


def test_the_lock_of_the_output_guards_a_shard(lock: Path) -> None:
    fence = Fence(lock.with_name(".r-shard-0-of-2.jsonl.lock"), lock)
    lock.unlink()

    with pytest.raises(LockLostError):
        fence.check()


def test_a_successors_lock_is_left(tmp_path: Path) -> None:
    path = tmp_path / ".r.jsonl.lock"
    theirs = msgspec.json.encode(asdict(Holder(host="elsewhere")))
    with output_lock(path):
        path.write_bytes(theirs)

    assert path.read_bytes() == theirs
