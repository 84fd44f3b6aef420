"""What the command's exit code says."""

from enum import IntEnum


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
    """`compare`: the rollouts cannot tell whether it is."""
    INTERRUPTED = 130
    TERMINATED = 143
