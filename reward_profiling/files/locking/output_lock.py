"""The lock of an output: one writer, or one for each of its shards.

It is a lock of the operating system, which releases it when its owner ends. Between
machines the lock's file counts as well: its holder is alive while it renews the file
(`lock_holder`).
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from reward_profiling.errors import OutputLockedError
from reward_profiling.files.locking.lock_holder import (
    LEASE_SECONDS,
    Holder,
    is_held_by,
    living_holder,
    pulse,
    renewed,
    silent_seconds,
    write_holder,
)
from reward_profiling.files.shard_names import Dealt, dealt_of, shard_pattern

_TRIES = 3
_PAUSE_SECONDS = 0.05
_LED_SECONDS = 30.0
"""How long shards take to stop, once the run that led them is gone."""


@contextmanager
def output_lock(
    path: Path,
    *,
    shared: bool = False,
    lease_seconds: float = LEASE_SECONDS,
    is_led: bool = False,
) -> Iterator[Holder]:
    """Hold the lock at `path`, alone or `shared` with other shards of one output.

    Held alone, the lock of an output excludes its shards, too.

    Raises:
        OutputLockedError: another process holds it; names that process.
    """
    holder = Holder(lease_seconds=lease_seconds, is_shared=shared, is_led=is_led)
    with _locked(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX) as file:
        write_holder(file, holder)
        if shared:
            # Not renewed, and not removed: other shards may hold the same file.
            yield holder
            return
        try:
            with renewed(path, holder):
                _wait_for_led_shards(path)
                yield holder
        finally:
            if is_held_by(path, holder):  # a lease may have passed to a successor
                path.unlink(missing_ok=True)


def living_shards(path: Path) -> Iterator[tuple[Dealt, Holder]]:
    """Yield the shards whose own lock is held, and who holds it.

    A shard's lock lies beside the output's, at `path`, and is named from it.
    """
    for found in sorted(path.parent.glob(f"{shard_pattern(_stem(path))}.*.lock")):
        dealt = dealt_of(_stem(found))
        if dealt and (holder := living_holder(found)) is not None:
            yield dealt, holder


def _stem(lock: Path) -> str:
    return Path(lock.name.removesuffix(".lock")).stem


def _wait_for_led_shards(path: Path) -> None:
    """Wait until shards of a run that is gone have stopped: they see that it is.

    Raises:
        OutputLockedError: one goes on, or nobody leads it.
    """
    deadline = time.monotonic() + _LED_SECONDS
    while (living := next(living_shards(path), None)) is not None:
        dealt, holder = living
        if not holder.is_led or time.monotonic() > deadline:
            raise OutputLockedError(refusal(f"{holder}, shard {dealt}"))
        time.sleep(_PAUSE_SECONDS)


def _locked(path: Path, kind: int) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    tries_left = _TRIES
    while True:
        # Appending creates the file but keeps the text of a live holder.
        file = path.open("a+b")
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            tries_left -= 1
            if not tries_left:
                raise OutputLockedError(refusal(_named(path))) from error
            time.sleep(_PAUSE_SECONDS)  # another process may only be looking at it
            continue
        # The last owner may have removed the file between our open and our lock: then
        # we hold a lock that nobody else can see, and must try again.
        if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            _refuse_living(path, file, is_shared=kind == fcntl.LOCK_SH)
            return file
        file.close()


def _refuse_living(path: Path, file: IO[bytes], *, is_shared: bool) -> None:
    """Refuse a lock whose last holder may live on another machine."""
    beat = pulse(path)
    # On this machine the operating system's lock, which we have, is proof enough.
    if beat is None or beat.holder.is_shared or beat.holder.is_here:
        return
    left = beat.holder.lease_seconds - silent_seconds(path)
    if left <= 0 or (is_shared and beat.holder.is_shared):
        return
    file.close()
    raise OutputLockedError(
        refusal(str(beat.holder))
        + f". If that process is dead, the lock expires in {left:.0f} s"
    )


def _named(path: Path) -> str:
    beat = pulse(path)
    return "an unnamed process" if beat is None else str(beat.holder)


def refusal(owner: str) -> str:
    """Say who writes an output, and what to do about it."""
    return (
        f"another run is writing this output: {owner}. Wait for it, stop it, or give"
        " another --output"
    )
