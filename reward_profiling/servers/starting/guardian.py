"""Runs a command that must not outlive its owner: `python guardian.py`.

The owner holds the other end of standard input. When it closes, because the owner is
done or was killed, the guardian stops the command and all its descendants: an
interrupt, a grace period, then a kill. It imports only the standard library, so that it
starts fast and works from any directory.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
_NOT_FOUND, _NOT_STARTED, _SIGNALLED = 127, 126, 128
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_LOOK_SHARE = 0.002
"""Of a processor, for looking more often than that."""
_LEAVE_SECONDS = 20.0
_EARLY_SECONDS = 60.0
WATCH = "--watch"
"""`--watch PID` in place of a command: stop what PID leaves behind when killed."""
REMOVE = "--remove"
"""`--remove FOLDER` before the rest: delete FOLDER when nothing runs any more."""
ALL_DONE = b"done"
"""What a watched owner writes before it closes: nothing is left behind."""


def main(arguments: list[str]) -> int:
    """Run `GRACE LOG COMMAND…` until it ends or standard input closes.

    The command has GRACE seconds to end after its interrupt; its output goes to the
    file LOG. Returns the command's exit code, as a shell gives it, or 0 when it was
    stopped because the owner let go.
    """
    if arguments[0] == WATCH:
        return _watch(int(arguments[1]))
    if arguments[0] == REMOVE:
        code = main(arguments[2:])
        shutil.rmtree(arguments[1], ignore_errors=True)
        return code
    grace, log, *command = arguments
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Ignore a terminal's Ctrl-C: it also reaches the owner, which then closes
        # standard input cleanly.
        signal.signal(ignored, signal.SIG_IGN)
    _adopt_orphans()
    with open(log, "ab", opener=_for_owner_only) as output:
        try:
            child = _started(command, output)
        except OSError as error:
            output.write(f"{command[0]} cannot be run: {error.strerror}\n".encode())
            is_absent = isinstance(error, FileNotFoundError)
            return _NOT_FOUND if is_absent else _NOT_STARTED
    while child.poll() is None:
        if _owner_let_go(_POLL_SECONDS):
            _stop(child, float(grace))
            return 0
        _reap_orphans(child.pid)
    _kill_descendants()
    code = child.returncode
    return code if code >= 0 else _SIGNALLED - code


def _for_owner_only(path: str, flags: int) -> int:
    """Open a log so that only its owner reads it: servers may print secrets."""
    return os.open(path, flags, 0o600)


def _started(command: list[str], output: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - the user's own command
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        restore_signals=True,
        preexec_fn=_default_signals,  # noqa: PLW1509 - no threads are running
    )


def _default_signals() -> None:
    # Ignored signals are inherited, but the command must obey its interrupt.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)


def _owner_let_go(seconds: float) -> bool:
    readable, _, _ = select.select([0], [], [], seconds)
    return bool(readable) and not os.read(0, 4096)


def _stop(child: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    # SIGINT, not SIGTERM: Gym stops its servers cleanly on Ctrl-C only.
    child.send_signal(signal.SIGINT)
    deadline = time.monotonic() + grace_seconds
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _kill_descendants()
    child.wait()


def _watch(owner: int) -> int:
    """Remember the owner's descendants, and stop those that outlive it.

    A process that ends in good order says so first; what it left running on purpose, or
    is still ending, is then not touched.
    """
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    known: dict[int, bytes] = {}
    readable: list[int] = []
    started = time.monotonic()
    while not readable:
        began = time.process_time()
        for pid in seen_descendants(owner) - known.keys() - {os.getpid()}:
            known[pid] = _start_of(pid)
        # Most children start early and may be orphaned early, so look often at first.
        wait = _LOOK_SECONDS
        if time.monotonic() - started < _EARLY_SECONDS:
            affordable = (time.process_time() - began) / _LOOK_SHARE
            wait = min(max(affordable, _POLL_SECONDS), _LOOK_SECONDS)
        readable, _, _ = select.select([0], [], [], wait)
    if os.read(0, 4096) != ALL_DONE:
        _stop_all(known)
    return 0


def _stop_all(known: dict[int, bytes]) -> None:
    """Ask processes to end, and kill those that have not after a while."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    number = signal.SIGTERM
    while left := [p for p, start in known.items() if start and _start_of(p) == start]:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        time.sleep(_LOOK_SECONDS)
        if time.monotonic() > deadline:
            number = signal.SIGKILL


def _start_of(pid: int) -> bytes:
    """Return when a process started, so that a new one with its number is told apart.

    Empty for one that is gone, or has ended and waits to be taken note of.
    """
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return b"" if fields[0] == b"Z" else fields[19]
    return b""


def _adopt_orphans() -> None:
    """Become the parent of what the command's processes leave behind.

    So a process is found whatever session it put itself into. Where there is no such
    call, orphans of other sessions are not found.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)


def _reap_orphans(command: int) -> None:
    """Take note of adopted processes that ended; the command's own end is not taken."""
    with suppress(ChildProcessError):
        while True:
            # WNOWAIT: only look. `Popen` must collect the command's exit code itself.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == command:
                return
            os.waitpid(ended.si_pid, 0)


def _kill_descendants() -> None:
    """Kill until a search finds no process that was not killed already."""
    # A process may fork between the search and its kill, so one pass is not enough.
    killed: set[int] = set()
    while found := descendants(os.getpid()) - killed:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def seen_descendants(ancestor: int) -> set[int]:
    """Return a process's descendants as the kernel lists them, thread by thread.

    A small part of the cost of looking at every process, so that it can be done often
    beside a run. One may be missing while another ends; a later look sees it. Where the
    kernel has no such lists, every process is looked at.
    """
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return descendants(ancestor)
    found: set[int] = set()
    asked = [ancestor]
    while asked:
        children = set(_children(asked.pop())) - found
        found |= children
        asked += children
    return found


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            with suppress(OSError), FileIO(f"{thread.path}/children") as listed:
                yield from map(int, listed.readall().split())


def descendants(ancestor: int) -> set[int]:
    """Return a process's descendants by a look at every process."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name before the last parenthesis may hold anything.
            fields = entry.read_bytes().rpartition(b")")[2].split()
            parents[int(entry.parent.name)] = int(fields[1])
    found: set[int] = set()
    while (
        more := {pid for pid, of in parents.items() if of in found | {ancestor}} - found
    ):
        found |= more
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
