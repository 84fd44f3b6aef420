"""What the environment servers answered about the records."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregateSummary:
    """What the environment servers answered about the records."""

    path: str | None
    """The aggregate metrics file; None when there was nothing to write."""

    num_servers: int
    """Environment servers that were asked."""

    num_failures_as_zero: int = 0
    """Failed rollouts that count as zero in the metrics."""

    num_missing_as_zero: int = 0
    """Missing rollouts that count as zero in the metrics."""

    warnings: tuple[str, ...] = ()
    """Servers that could not, one sentence each."""

    @property
    def written(self) -> tuple[str, ...]:
        """The file, where there is one."""
        return () if self.path is None else (self.path,)

    @property
    def is_reusable(self) -> bool:
        """Whether every server answered: one that could not may do so next time."""
        return not self.warnings
