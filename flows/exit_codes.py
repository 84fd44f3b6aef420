"""What the command's exit code says."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Whole, failed, refused, partial, or stopped by a signal."""

    WHOLE = 0
    FAILED = 1
    REFUSED = 2
    PARTIAL = 3
    INTERRUPTED = 130
    TERMINATED = 143
