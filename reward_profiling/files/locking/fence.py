"""The fence of a lock: whoever writes under it checks that it is still theirs.

A process that was stopped, or whose machine was suspended, for longer than its lease
may have a successor where the operating system's locks do not reach. It sees that by
the lock's file, which names its holder, before it writes again.
"""

import os
import time
from pathlib import Path

from reward_profiling.errors import LockLostError
from reward_profiling.files.locking.lock_holder import RENEWALS, pulse

# Not the monotonic clock, which stands still while a machine is suspended.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_KEPT = (
    "This process writes nothing more. Every record is kept; run the same command again"
    " when no other run writes the output"
)


class Fence:
    """What a writer asks before it writes; it is cheap between two looks."""

    def __init__(self, *locks: Path) -> None:
        """Note which of the locks this process holds; without one it never refuses."""
        self._lock: Path | None = None
        self._token, self._interval = "", 0.0
        for lock in locks:
            beat = pulse(lock)
            if beat is None or not (beat.holder.is_here and not beat.holder.is_shared):
                continue
            if beat.holder.pid == os.getpid():
                self._lock, self._token = lock, beat.holder.token
                self._interval = beat.holder.lease_seconds / RENEWALS
                break
        self._looked = time.clock_gettime(_CLOCK)

    def check(self) -> None:
        """Refuse to go on where the lock has another holder.

        The file is looked at once in a sixth of the lease, so after every pause that
        could have lost the lock. One that cannot be read just now decides nothing: it
        is looked at again before the next write.

        Raises:
            LockLostError: it has, or is gone; names the file, and the new holder.
        """
        now = time.clock_gettime(_CLOCK)
        if self._lock is None or now - self._looked < self._interval:
            return
        beat = pulse(self._lock)
        if beat is None and not self._lock.exists():
            raise LockLostError(
                f"the lock {self._lock} is gone: another run took it and has ended, or"
                f" someone removed it. {_KEPT}"
            )
        if beat is not None:
            if beat.holder.token != self._token:
                raise LockLostError(
                    f"the lock {self._lock} passed to {beat.holder} while this process"
                    f" was stopped. {_KEPT}"
                )
            self._looked = now
