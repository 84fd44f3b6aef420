"""Who holds a lock, and whether that process is alive, from the lock's file.

The holder writes one JSON object into the file and renews the file's time of change
until it releases the lock. Other machines need that: a shared folder may not pass on
the operating system's locks, or may keep those of a machine that is gone. All times of
a folder come from one clock, the file server's; they are only compared with each other.
"""

import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple
from uuid import uuid4

import msgspec

LEASE_SECONDS = 60.0
"""How long a holder on another machine counts as alive without a renewal."""
RENEWALS = 6
"""How often a lease is renewed while it lasts."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def _machine() -> str:
    """Return what tells this running system from others: containers share it."""
    with suppress(OSError):
        # Host names are not unique among containers; the kernel's boot id is shared.
        return _BOOT.read_text().strip()
    return socket.gethostname()


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock."""

    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    machine: str = field(default_factory=_machine)
    started: str = field(default_factory=_moment)
    token: str = field(default_factory=lambda: uuid4().hex)
    """Tells this holding from every other."""
    lease_seconds: float = LEASE_SECONDS
    is_shared: bool = False
    """Whether others hold it as well; then it says nothing of who lives."""
    is_led: bool = False
    """Whether it stops by itself when the run that started it is gone."""
    stop: str | None = None
    """Why whoever it leads is to stop; None while they are to go on."""
    is_failure: bool = False
    """Whether that is because of failures."""

    def __str__(self) -> str:
        """Name the process."""
        return f"pid {self.pid} on {self.host}, since {self.started}"

    @property
    def is_here(self) -> bool:
        """Whether it runs on this system, whose own locks tell of its end."""
        return self.machine == _machine()


class Pulse(NamedTuple):
    """What changes while a holder lives."""

    holder: Holder
    changed_ns: int


_DECODE = msgspec.json.Decoder(Holder).decode


def write_holder(file: IO[bytes], holder: Holder) -> None:
    """Write who holds the lock, in place: the file is the lock."""
    file.seek(0)
    file.truncate()
    file.write(msgspec.json.encode(asdict(holder)))
    file.flush()


def pulse(path: Path) -> Pulse | None:
    """Return a lock's holder and when it was renewed; None where nobody is named."""
    try:
        with path.open("rb") as file:  # opening makes NFS ask its server again
            return Pulse(_DECODE(file.read()), os.fstat(file.fileno()).st_mtime_ns)
    except (OSError, msgspec.DecodeError):
        return None


def ask_to_stop(path: Path, reason: str, *, is_failure: bool) -> None:
    """Tell all processes that the lock's holder leads to stop; the first call counts.

    The caller is the holder.
    """
    beat = pulse(path)
    if beat is None or beat.holder.stop is not None:
        return
    told = {**asdict(beat.holder), "stop": reason, "is_failure": is_failure}
    # Padded to the old length, so that no rest of a longer text stays behind.
    told_in_full = msgspec.json.encode(told).ljust(path.stat().st_size)
    with path.open("r+b") as file:  # over the old text: a reader sees one or the other
        file.write(told_in_full)


def silent_seconds(path: Path) -> float:
    """Return how long ago a lock was renewed, by the clock of its folder."""
    # A new file gets the file server's time, which may differ from this machine's.
    with TemporaryFile(dir=path.parent) as clock:
        clock.write(b"\0")
        clock.flush()
        return os.fstat(clock.fileno()).st_mtime - path.stat().st_mtime


def living_holder(path: Path) -> Holder | None:
    """Return the present holder of a lock, if any, without taking it."""
    beat = pulse(path)
    if beat is None or beat.holder.is_shared:
        return None
    holder = beat.holder
    with suppress(OSError):
        if holder.is_here:
            return holder if _is_locked(path) else None
        return holder if silent_seconds(path) < holder.lease_seconds else None
    return None


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            # A shared lock conflicts with the holder, but not with another look.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_held_by(path: Path, holder: Holder) -> bool:
    """Say whether a lock's file still names this holder."""
    beat = pulse(path)
    return beat is not None and beat.holder.token == holder.token


@contextmanager
def renewed(path: Path, holder: Holder) -> Iterator[None]:
    """Renew the time of a lock's file while the block runs and it names the holder.

    It runs in a thread, because the event loop may be blocked for longer than others
    wait.
    """
    done = threading.Event()

    def renew() -> None:
        while not done.wait(holder.lease_seconds / RENEWALS):
            with suppress(OSError):  # the folder may come back before the lease ends
                if is_held_by(path, holder):  # else it is a successor's lease
                    os.utime(path)

    thread = threading.Thread(target=renew, name="lock-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
