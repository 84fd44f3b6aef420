"""Coverage: how much of a plan was collected."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from reward_profiling.insights.units import Unit
from reward_profiling.profiling.rollout_table import RolloutStatus, RolloutTable

_NO_CLASS = "unknown"


class Coverage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of a plan was collected; the states add up to `planned`."""

    num_tasks: int
    """(task, agent) pairs that were planned."""

    num_scored_tasks: int
    """Of those, pairs with at least one scored rollout."""

    planned: int
    """Rollouts planned."""

    scored: int
    """Rollouts whose reward is a finite number and counts."""

    unscored: int
    """Rollouts with a record whose reward is missing, null, text or not finite."""

    masked: int
    """Rollouts with a record that the server masked: their reward does not count."""

    failed: int
    """Rollouts without a record but with a recorded failure."""

    missing: int
    """Rollouts with neither."""

    scored_share: float | None
    """scored / planned; None for an empty plan."""

    failures_by_class: dict[str, int]
    """Failed rollouts by the class of their last recorded failure."""

    @property
    def collected(self) -> int:
        """Rollouts with a record."""
        return self.scored + self.unscored + self.masked


def coverage_of(table: RolloutTable, units: Sequence[Unit]) -> Coverage:
    """Count the rollouts of some units by their state."""
    counts: Counter[int] = Counter()
    classes: Counter[str] = Counter()
    for unit in units:
        for row in unit.rows:
            counts[table.status[row]] += 1
            if table.status[row] == RolloutStatus.FAILED:
                classes[table.failure_class.get(row, _NO_CLASS)] += 1
    planned, scored = counts.total(), counts[RolloutStatus.SCORED]
    return Coverage(
        num_tasks=len(units),
        num_scored_tasks=sum(unit.n > 0 for unit in units),
        planned=planned,
        scored=scored,
        unscored=counts[RolloutStatus.UNSCORED],
        masked=counts[RolloutStatus.MASKED],
        failed=counts[RolloutStatus.FAILED],
        missing=counts[RolloutStatus.MISSING],
        scored_share=scored / planned if planned else None,
        failures_by_class=dict(sorted(classes.items())),
    )
