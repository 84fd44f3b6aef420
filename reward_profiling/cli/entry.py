"""The installed command: streams, interrupts and the exit code around the app."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from reward_profiling.cli.importing import to_stay


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # none is there when it was closed
            # Words matter more than a sign that the terminal's encoding lacks.
            stream.reconfigure(errors="replace")
    with _starting():
        from reward_profiling.cli.app import run  # noqa: PLC0415 - takes a while

    sys.exit(run(sys.argv[1:], _starting()))


@contextmanager
def _starting() -> Iterator[None]:
    """Import to stay, and have Ctrl-C end the process at once: nothing is begun yet.

    As an exception it would be a traceback, and some extension modules crash when one
    comes while they are imported.
    """
    # Whoever started us may have it ignored.
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with to_stay():
            yield
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
