"""One shard's part of a plan, and what the files say of it before it is collected.

What is owed is computed from the files, never from a memory of earlier runs.
"""

import time
from dataclasses import dataclass, field, replace

from reward_profiling import wire
from reward_profiling.collecting.ledger import Ledger, read_parts
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import (
    AgentProgress,
    Progress,
    RunningMean,
    is_reward,
)
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.window.stop_rules import Stop
from reward_profiling.errors import ConfigError, DuplicateRolloutError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.key_set import KeySet
from reward_profiling.planning.on_disk.planned_rollouts import (
    PlannedRollout,
    read_planned,
)
from reward_profiling.planning.on_disk.run_manifest import refuse_cut_plan


@dataclass(slots=True)
class OpenShard:
    """One shard's part of a plan, and what is known of it."""

    files: RunFiles
    own: RunFiles
    index: int
    count: int
    ledger: Ledger
    damaged: int = 0
    planned: int = 0
    owed: int = 0
    given_up: int = 0
    agents: dict[str, AgentProgress] = field(default_factory=dict)
    pairs: set[tuple[str, str | None]] = field(default_factory=set)
    """(agent, task source) of its rows: who runs them, and whose verifier scores."""
    stamped: set[tuple[str, str | None]] = field(default_factory=set)
    """(environment server, agent) of the rows that are sent to a server by its name."""
    tasks: set[int | str] = field(default_factory=set)
    """Its tasks, or as many of them as may fail alike."""
    most_tasks: int = 0
    rewards: RunningMean = field(default_factory=RunningMean)
    """Of the records that are there, where it is the only shard."""

    def add(self, planned: PlannedRollout) -> None:
        """Count one of its rollouts."""
        known = self.agents.setdefault(planned.runner, AgentProgress())
        if planned.agent is not None:
            self.pairs.add((planned.agent, planned.stamps.get(wire.TASK_SOURCE)))
        if planned.server is not None:
            self.stamped.add((planned.server, planned.agent))
        if len(self.tasks) < self.most_tasks:
            self.tasks.add(planned.key[0])
        known.planned += 1
        self.planned += 1
        if self.ledger.is_owed(planned.key):
            self.owed += 1
            return
        known.done += 1
        self.given_up += planned.key not in self.ledger.collected

    def add_reward(self, reward: object) -> None:
        """Count the reward of a record that is there."""
        if is_reward(reward):
            self.rewards.add(float(reward))  # type: ignore[arg-type]

    def start(self, now: float) -> Progress:
        """Return the progress of a collection that starts now."""
        return Progress(
            planned=self.planned,
            name=f"shard {self.index} of {self.count}" if self.count > 1 else "",
            found=self.planned - self.owed - self.given_up,
            given_up=self.given_up,
            started=now,
            agents=self.agents,
            rewards=replace(self.rewards),
        )

    def summary(self, progress: Progress, stop: Stop | None) -> ShardSummary:
        """Return what its collection came to."""
        return ShardSummary(
            path=str(self.own.rollouts),
            shard_index=self.index,
            num_shards=self.count,
            planned=self.planned,
            found=progress.found,
            collected=progress.collected,
            failed=progress.failed,
            given_up=self.given_up,
            owed=progress.left,
            damaged=self.damaged,
            retries=progress.retries,
            replies_lost=progress.replies_lost,
            seconds=time.monotonic() - progress.started,
            stopped=stop.reason if stop else None,
            is_failed=bool(stop and stop.is_failure),
        )

    def not_collected(self, stop: Stop | None = None) -> ShardSummary:
        """Return the summary of a shard from which nothing is collected."""
        return self.summary(self.start(time.monotonic()), stop)


def open_shard(
    files: RunFiles,
    index: int,
    count: int,
    options: CollectOptions,
    *,
    mends: bool = True,
) -> OpenShard:
    """Read what is planned, collected and failed for one shard.

    The caller holds the lock of the shard's own files, or of the whole output; without
    it, nothing may be mended.

    Raises:
        ConfigError: there is no plan.
        RecordError: the plan was cut, or a row of it cannot be read or names no agent.
        DuplicateRolloutError: two rows plan one rollout.
    """
    if not files.materialized_inputs.exists():
        raise ConfigError(
            f"{files.materialized_inputs} does not exist; materialize the inputs first"
        )
    ledger = Ledger(options.max_attempts, options.retry_given_up)
    own = files.shard(index, count)
    shard = OpenShard(
        files, own, index, count, ledger, most_tasks=options.identical_failures
    )
    # Which of several shards a record belongs to is not known here.
    take = shard.add_reward if count == 1 else _ignore
    shard.damaged = read_parts(files, ledger, own if mends else None, take)
    keys = KeySet()
    for planned in read_planned(files.materialized_inputs, index, count):
        if not keys.add(planned.key):
            raise DuplicateRolloutError(
                f"{files.materialized_inputs} plans {planned.name} twice"
            )
        shard.add(planned)
    refuse_cut_plan(files, shard.planned, index, count)
    return shard


def _ignore(_: object) -> None:
    """Take nothing."""
