"""The installed command: a plain `profile` at once, everything else by `flows.cli`."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["profile"]:
        from flows.quick_profile import quick_profile  # noqa: PLC0415 - its point

        code = quick_profile(arguments[1:])
        if code is not None:
            sys.exit(code)
    from flows.cli import run  # noqa: PLC0415 - takes a while

    sys.exit(run(arguments))
