"""How an error of ours ends a command: its exit code, and what is said of it."""

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.errors import ConfigError, OutputLockedError, RecordError

STOPPED = "stopped; run the same command again to do the rest"
_REFUSED = (ConfigError, RecordError, OutputLockedError)


def code_of(error: Exception) -> ExitCode:
    """Return the exit code: the operator has to change something, or it failed."""
    return ExitCode.REFUSED if isinstance(error, _REFUSED) else ExitCode.FAILED


def words_of(error: Exception) -> str:
    """Return what is said; of a disk that is full or read-only, the path says it."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error)
