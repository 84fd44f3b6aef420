"""The installed command: a plain `profile` at once, everything else by `cli.app`."""

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from reward_profiling.cli.importing import to_stay


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # none is there when it was closed
            # Words matter more than a sign that the terminal's encoding lacks.
            stream.reconfigure(errors="replace")
    arguments = sys.argv[1:]
    if arguments[:1] == ["profile"]:
        _profile_quickly(arguments[1:])
    with _ended_by_interrupts(), to_stay():
        from reward_profiling.cli.app import run  # noqa: PLC0415 - takes a while

    sys.exit(run(arguments))


def _profile_quickly(arguments: Sequence[str]) -> None:
    """Profile and end the process; return where the whole command line has to."""
    gc.disable()  # what is imported stays
    with _ended_by_interrupts():
        from reward_profiling.cli.quick_profile import quick_profile  # noqa: PLC0415 - its point

    code = quick_profile(arguments)
    gc.enable()
    if code is None:
        return
    # All is written and printed by now, and taking the modules down takes a tenth of a
    # profile of a thousand rollouts.
    os._exit(code)


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
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
