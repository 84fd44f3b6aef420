"""What is owed: planned, not collected, not given up.

Source: `gym-contract.md` §3.7. It is computed from the files alone; the order of
their lines does not matter.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from reward_profiling.collecting.on_disk.journal import Entry, read_journal
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.key_set import KeySet
from reward_profiling.planning.on_disk.planned_rollouts import read_planned
from reward_profiling.planning.on_disk.run_manifest import refuse_cut_plan
from reward_profiling.planning.row_members import RolloutKey

DEFAULT_MAX_ATTEMPTS = 3


@dataclass(slots=True)
class Ledger:
    """What the records and failures on disk say of each rollout key."""

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """Recorded failures after which a rollout is given up."""
    retry_given_up: bool = False
    """Try again what was given up, once more in this run."""
    collected: KeySet = field(default_factory=KeySet)
    failures: Counter[RolloutKey] = field(default_factory=Counter)
    terminal: set[RolloutKey] = field(default_factory=set)

    def add_record(self, key: RolloutKey) -> None:
        """Note a line of a rollouts file."""
        self.collected.add(key)

    def add_failure(self, key: RolloutKey, *, terminal: bool) -> None:
        """Note a line of a failures file: one attempt that came to nothing."""
        self.failures[key] += 1
        if terminal:
            self.terminal.add(key)

    def is_given_up(self, key: RolloutKey) -> bool:
        """Say whether a rollout without a record will not be tried again."""
        if self.retry_given_up:
            return False
        return key in self.terminal or self.failures[key] >= self.max_attempts

    def is_owed(self, key: RolloutKey) -> bool:
        """Say whether a planned rollout still has to be collected."""
        return key not in self.collected and not self.is_given_up(key)


def read_ledger(files: RunFiles) -> Ledger:
    """Read what an output's journals say, shards included; nothing is mended."""
    ledger = Ledger()
    read_parts(files, ledger, None)
    return ledger


def count_collected(files: RunFiles) -> tuple[int, int]:
    """Count the planned rollouts, and those of them that have a record.

    Raises:
        ConfigError: there is no plan.
        RecordError: it was cut.
    """
    ledger = read_ledger(files)
    planned = collected = 0
    for rollout in read_planned(files.materialized_inputs):
        planned += 1
        collected += rollout.key in ledger.collected
    refuse_cut_plan(files, planned)
    return planned, collected


def read_parts(
    files: RunFiles,
    ledger: Ledger,
    own: RunFiles | None,
    take_reward: Callable[[object], None] = lambda _: None,
) -> int:
    """Read an output's journals; damaged lines are set aside in our `own` only.

    `take_reward` hears of the reward of each rollout that has a record.
    """

    def add_record(entry: Entry) -> None:
        if entry.key not in ledger.collected:
            take_reward(entry.reward)
        ledger.add_record(entry.key)

    def add_failure(entry: Entry) -> None:
        ledger.add_failure(entry.key, terminal=entry.is_terminal)

    aside = 0
    for part in dict.fromkeys([files, *files.shards(), *([own] if own else [])]):
        damaged = part.damaged if part == own else None
        aside += read_journal(part.rollouts, add_record, damaged)
        aside += read_journal(part.failures, add_failure, damaged)
    return aside
