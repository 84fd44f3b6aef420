"""Runs a command that must not outlive its owner: `python -m tasks.adapters.guardian`.

The owner holds the other end of standard input. When it closes, because the owner is
done or because it was killed, the command's whole session is stopped: an interrupt,
a grace, then a kill. Only the standard library is imported, so that it starts at once.
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

GRACE_SECONDS = 15.0
_POLL_SECONDS = 0.1


def main(arguments: list[str]) -> int:
    """Run `LOG COMMAND…` until it ends or standard input closes.

    The command's output goes to the file LOG. Returns the command's exit code, or 0
    when it was stopped because the owner let go.
    """
    log, *command = arguments
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the owner's end of standard input decides; a terminal's Ctrl-C reaches
        # the owner, which closes it in good order.
        signal.signal(ignored, signal.SIG_IGN)
    with Path(log).open("ab") as output:
        child = subprocess.Popen(  # noqa: S603 - the user's own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=_default_signals,  # noqa: PLW1509 - no threads are running
        )
    while child.poll() is None:
        if _owner_let_go(_POLL_SECONDS):
            _stop(child)
            return 0
    _kill_session(child.pid)
    return child.returncode


def _default_signals() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)


def _owner_let_go(seconds: float) -> bool:
    readable, _, _ = select.select([0], [], [], seconds)
    return bool(readable) and not os.read(0, 4096)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    child.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _kill_session(child.pid)
    child.wait()


def _kill_session(leader: int) -> None:
    """Kill every process of the command's session, whoever started it."""
    for pid in _session(leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _session(leader: int) -> list[int]:
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            if os.getsid(pid) == leader:
                members.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return members


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
