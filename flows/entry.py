"""The installed command: a plain `profile` at once, everything else by `flows.cli`."""

import gc
import os
import sys
from collections.abc import Sequence


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["profile"]:
        _profile_quickly(arguments[1:])
    from flows.cli import run  # noqa: PLC0415 - takes a while

    sys.exit(run(arguments))


def _profile_quickly(arguments: Sequence[str]) -> None:
    """Profile and end the process; return where the whole command line has to."""
    gc.disable()  # what is imported stays
    from flows.quick_profile import quick_profile  # noqa: PLC0415 - its point

    code = quick_profile(arguments)
    gc.enable()
    if code is None:
        return
    # All is written and printed by now, and taking the modules down takes a tenth of a
    # profile of a thousand rollouts.
    os._exit(code)
