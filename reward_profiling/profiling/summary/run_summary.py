"""The summary of a run, in total and for each agent: counts, means, findings.

Unknown is None, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reward_profiling.profiling.finding import Finding

if TYPE_CHECKING:  # Pydantic's import takes longer than a small profile
    from reward_profiling.collecting.shard_summary import ShardSummary


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """Counts of planned rollouts, which add up.

    Collected, failed and missing are all that was planned; scored, unscored and masked
    are all that was collected.
    """

    planned: int = 0
    """Rollouts planned."""

    collected: int = 0
    """Rollouts with a record."""

    scored: int = 0
    """Records whose reward is a finite number and counts."""

    unscored: int = 0
    """Records whose reward is missing, null, text or not finite."""

    masked: int = 0
    """Records that the server masked: their reward does not count."""

    failed: int = 0
    """Rollouts without a record but with a recorded failure."""

    missing: int = 0
    """Rollouts with neither."""

    unscored_reasons: Mapping[str, int] = field(default_factory=dict)
    """What the rewards of unscored records are, and how many; in order of name."""

    failed_classes: Mapping[str, int] = field(default_factory=dict)
    """Class of the last failure of failed rollouts, and how many; likewise."""

    mean_reward: float | None = None
    """Mean over tasks of the task's mean reward; None when none is scored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSummary(Tally):
    """What one agent's rollouts came to."""

    agent: str
    """Name of the agent."""

    num_tasks: int
    """Distinct tasks that it was planned to run."""

    standard_error: float | None = None
    """Standard error of the mean, tasks being the sample; None below two tasks."""

    never_pass: int = 0
    """Tasks none of whose scored rollouts passed."""

    sometimes_pass: int = 0
    """Tasks with passes and misses: the ones that can teach."""

    always_pass: int = 0
    """Tasks all of whose scored rollouts passed."""

    undetermined: int = 0
    """Tasks with a single scored rollout, which is too few to tell."""

    @property
    def num_scored_tasks(self) -> int:
        """Tasks with at least one scored rollout: the mean's n."""
        told = self.never_pass + self.sometimes_pass + self.always_pass
        return told + self.undetermined


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary(Tally):
    """What a run came to, over all agents."""

    output: str
    """The rollouts file."""

    agents: tuple[AgentSummary, ...] = ()
    """One for each agent, in order of name."""

    files: tuple[str, ...] = ()
    """The files that were written."""

    num_scored_tasks: int = 0
    """Tasks with at least one scored rollout, over all agents: the mean's n."""

    warnings: tuple[str, ...] = ()
    """What a person should know, one sentence each."""

    findings: tuple[Finding, ...] = ()
    """What to know before the numbers are trusted, the worst first."""

    stopped: str | None = None
    """Why the collection ended early; None when it came to its end."""

    is_failed: bool = False
    """Whether it ended early because of failures."""

    @property
    def is_partial(self) -> bool:
        """Whether a planned rollout has no score."""
        return self.scored < self.planned

    @property
    def written(self) -> tuple[str, ...]:
        """The files that were written."""
        return self.files

    @property
    def is_reusable(self) -> bool:
        """Whether it says all that there is to say: it always does."""
        return True


def with_stops(summary: RunSummary, shards: "Sequence[ShardSummary]") -> RunSummary:
    """Add why shards ended early, each reason once."""
    reasons = list(dict.fromkeys(shard.stopped for shard in shards if shard.stopped))
    return replace(
        summary,
        stopped="; ".join(reasons) or None,
        is_failed=any(shard.is_failed for shard in shards),
    )
