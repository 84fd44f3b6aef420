"""How a command ends: its exit code, and the message of an error of ours."""

from enum import IntEnum

from reward_profiling.errors import (
    ConfigError,
    Fault,
    OptionsError,
    OutputLockedError,
    RecordError,
)


class ExitCode(IntEnum):
    """Whole, failed, refused, partial, unsound, judged, or stopped by a signal."""

    WHOLE = 0
    FAILED = 1
    REFUSED = 2
    PARTIAL = 3
    UNSOUND = 4
    """Whole, with a finding as bad as `--strict` says."""
    REGRESSED = 5
    """`compare`: the candidate is worse by more than `--max-regression`."""
    INCONCLUSIVE = 6
    """`compare`: the rollouts do not show whether it is."""
    INTERRUPTED = 130
    TERMINATED = 143


STOPPED = "stopped; run the same command again to do the rest"
_REFUSED = (ConfigError, RecordError, OutputLockedError)


def code_of(error: Exception) -> ExitCode:
    """Return the exit code: REFUSED if the user must change something, else FAILED."""
    return ExitCode.REFUSED if isinstance(error, _REFUSED) else ExitCode.FAILED


def words_of(error: Exception) -> str:
    """Return the message; for a full or read-only disk, with the path."""
    if isinstance(error, OptionsError):
        return "\n".join(map(_on_the_line, error.faults))
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error)


def _on_the_line(fault: Fault) -> str:
    """Name an option as the command line has it, which shows what was given."""
    shown = isinstance(fault.given, str | int | float)
    given = f" (got {fault.given!r})" if shown else ""
    return f"--{fault.option.replace('_', '-')}{fault.reason}{given}"
