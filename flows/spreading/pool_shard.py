"""One shard that workers collect: its latest run, and its last sign of life."""

import time
from dataclasses import dataclass, field
from uuid import UUID

from prefect.client.schemas.objects import State, StateType

from reward_profiling.collecting.on_disk.shard_summaries import (
    drop_summary,
    found_summary,
)
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.spread import Look
from reward_profiling.files.locking.lock_holder import Pulse, pulse
from reward_profiling.files.run_files import RunFiles


@dataclass(slots=True)
class PoolShard:
    """One shard, and its latest run."""

    index: int
    own: RunFiles
    starts: int = 0
    run_id: UUID | None = None
    state: State | None = None
    beat: Pulse | None = None
    since: float = field(default_factory=time.monotonic)
    """When it was last seen to go on."""
    is_late_told: bool = False
    summary: ShardSummary | None = None

    @property
    def type(self) -> str:
        """Its state; a shard whose run does not exist yet counts as waiting."""
        return str(self.state.type.value) if self.state else StateType.SCHEDULED.value

    @property
    def is_waiting(self) -> bool:
        """Whether no worker has begun it."""
        return self.summary is None and self.type in {"SCHEDULED", "PENDING"}

    def see(self, state: State | None) -> None:
        """Take the state of its run, and the sign of life of its lock."""
        before = self.type, self.beat
        self.state, self.beat = state or self.state, pulse(self.own.lock)
        if (self.type, self.beat) != before:
            self.since = time.monotonic()

    def look(self) -> Look:
        """Return what is seen of it."""
        return Look(
            state=self.type,
            has_summary=found_summary(self.own) is not None,
            seconds=time.monotonic() - self.since,
        )

    def again(self) -> None:
        """Forget its run: there will be another."""
        drop_summary(self.own)
        self.run_id = self.state = None
        self.since, self.is_late_told = time.monotonic(), False
