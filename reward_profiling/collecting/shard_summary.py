"""What collecting one shard came to, and what merging shards did."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardSummary:
    """What collecting one shard came to."""

    path: str
    """The rollouts file that the shard appends to."""

    shard_index: int
    """0-based."""

    num_shards: int
    """Shards in all."""

    planned: int
    """Rollouts dealt to the shard."""

    found: int
    """Of those, collected by earlier runs."""

    collected: int
    """Collected by this run."""

    failed: int
    """Failures recorded by this run."""

    given_up: int
    """Not tried any more: a failure was terminal, or there were too many."""

    damaged: int = 0
    """Lines set aside because they could not be read."""

    owed: int = 0
    """Still to collect: neither collected nor given up."""

    retries: int = 0
    """Requests that were sent again."""

    replies_lost: int = 0
    """Requests whose reply was lost, so that the server may have done the work."""

    seconds: float = 0.0
    """Time that this run collected for."""

    stopped: str | None = None
    """Why the collection ended early; None when it came to its end."""

    is_failed: bool = False
    """Whether it ended early because of failures, rather than of time or a signal."""

    @property
    def missing(self) -> int:
        """Planned rollouts without a record."""
        return self.planned - self.found - self.collected


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeSummary:
    """What merging shards came to."""

    path: str
    """The merged rollouts file."""

    num_shards: int
    """Shard files that were merged."""

    merged: int
    """Records that the output did not have yet."""

    copies: int
    """Records of a rollout that was there already; the first one was kept."""

    set_aside: int = 0
    """Lines that are no records, moved to the parts' damaged files."""

    missing_shards: tuple[str, ...] = ()
    """Shards, as "I/N", whose siblings are there and they are not."""

    busy_shards: tuple[str, ...] = ()
    """Shards, as "I/N", that were still being collected: their files are left."""
