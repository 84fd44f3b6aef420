"""What is owed: planned, not collected, not given up.

Source: `gym-contract.md` §3.7. It is computed from the files alone; the order of
their lines does not matter.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.core import wire
from tasks.core.records import RolloutKey, rollout_key

DEFAULT_MAX_ATTEMPTS = 3


@dataclass(slots=True)
class Ledger:
    """What the records and failures on disk say of each rollout key."""

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """Recorded failures after which a rollout is given up."""
    collected: set[RolloutKey] = field(default_factory=set)
    failures: Counter[RolloutKey] = field(default_factory=Counter)
    terminal: set[RolloutKey] = field(default_factory=set)

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Note a line of a rollouts file."""
        self.collected.add(rollout_key(record))

    def add_failure(self, failure: Mapping[str, Any]) -> None:
        """Note a line of a failures file: one attempt that came to nothing."""
        key = rollout_key(failure)
        self.failures[key] += 1
        if failure.get(wire.FAILURE_TERMINAL):
            self.terminal.add(key)

    def is_given_up(self, key: RolloutKey) -> bool:
        """Say whether a rollout without a record will not be tried again."""
        return key in self.terminal or self.failures[key] >= self.max_attempts

    def is_owed(self, key: RolloutKey) -> bool:
        """Say whether a planned rollout still has to be collected."""
        return key not in self.collected and not self.is_given_up(key)
