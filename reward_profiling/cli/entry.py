"""The installed command: streams, interrupts and the exit code around the app."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # none is there when it was closed
            # Words matter more than a sign that the terminal's encoding lacks.
            stream.reconfigure(errors="replace")
    with _ended_by_interrupts():
        from reward_profiling.cli.app import run  # noqa: PLC0415 - takes a while

    sys.exit(run(sys.argv[1:], _ended_by_interrupts()))


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Have Ctrl-C end the process at once, without a word: nothing is begun yet.

    As an exception it would be a traceback, and some extension modules crash when one
    comes while they are imported.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # whoever started us has it ignored
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
