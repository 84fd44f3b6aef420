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
            # Print "?" for a character that the terminal lacks, instead of failing.
            stream.reconfigure(errors="replace")
    with _starting():
        from reward_profiling.cli.app import run  # noqa: PLC0415 - takes a while

    sys.exit(run(sys.argv[1:], _starting()))


@contextmanager
def _starting() -> Iterator[None]:
    """Import for good, and let Ctrl-C end the process at once: no work has begun.

    As an exception, Ctrl-C would print a traceback, and some extension modules crash
    if one interrupts their import.
    """
    # A parent process may have set SIGINT to be ignored: leave that as it is.
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with to_stay():
            yield
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
