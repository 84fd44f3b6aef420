"""What a profile counts: light enough to print before anything heavy is imported.

`reward_profiling.models` has the same as models, for what steps hand on.
"""

from collections.abc import Iterable, Mapping
from itertools import repeat
from operator import ge

import msgspec

PASS_TOLERANCE = 1e-9
"""How far below the threshold rounding may leave a reward that passes."""


def is_pass(reward: float, threshold: float) -> bool:
    """Say whether a reward reaches the threshold, give or take the tolerance."""
    return reward >= threshold - PASS_TOLERANCE


def num_passing(rewards: Iterable[float], threshold: float) -> int:
    """Return how many rewards pass (see `is_pass`)."""
    return sum(map(ge, rewards, repeat(threshold - PASS_TOLERANCE)))


class Tally(msgspec.Struct, frozen=True, kw_only=True):
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
    """Records whose reward measures nothing, by the server's own word."""
    failed: int = 0
    """Rollouts without a record but with a recorded failure."""
    missing: int = 0
    """Rollouts with neither."""
    unscored_reasons: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What the rewards of unscored records are, and how many; in order of name."""
    failed_classes: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Class of the last failure of failed rollouts, and how many; likewise."""
    mean_reward: float | None = None
    """Mean over tasks of the task's mean reward; None when none is scored."""


class AgentCounts(Tally, frozen=True, kw_only=True):
    """What one agent's rollouts came to. Unknown is None, never 0."""

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
    """Tasks with a single scored rollout, which says nothing of the kind."""

    @property
    def num_scored_tasks(self) -> int:
        """Tasks with at least one scored rollout: the mean's n."""
        told = self.never_pass + self.sometimes_pass + self.always_pass
        return told + self.undetermined


class RunCounts(Tally, frozen=True, kw_only=True):
    """What a run came to, over all agents."""

    output: str
    """The rollouts file."""
    agents: tuple[AgentCounts, ...] = ()
    """One for each agent, in order of name."""
    files: tuple[str, ...] = ()
    """The files that were written."""
    num_scored_tasks: int = 0
    """Tasks with at least one scored rollout, over all agents: the mean's n."""
    warnings: tuple[str, ...] = ()
    """What a person should know, one sentence each."""

    @property
    def stopped(self) -> None:
        """Why a collection ended early: a profile of files knows of none."""
        return None

    @property
    def is_partial(self) -> bool:
        """Whether a planned rollout has no score."""
        return self.scored < self.planned
