"""What steps hand on and say in the end: small frozen models, never rows.

The string under each field is its documentation everywhere.
"""

from collections.abc import Sequence

from pydantic import Field

from reward_profiling.insights.schema import Finding
from reward_profiling.options import Frozen
from reward_profiling.values import Computed


class PlanSummary(Computed):
    """What a materialization wrote."""

    path: str
    """The materialized inputs, one line per planned rollout."""

    num_tasks: int
    """Distinct task indices."""

    num_rollouts: int
    """Lines of the plan."""

    num_new: int
    """Lines that an earlier plan at this path did not have."""

    warnings: tuple[str, ...] = ()
    """What a person should know of the input, one sentence each."""

    manifest: str = ""
    """What the plan was made from: a file beside it."""

    @property
    def written(self) -> tuple[str, ...]:
        """Files that hold the plan."""
        return (self.path, self.manifest)

    @property
    def is_reusable(self) -> bool:
        """Whether the plan is whole: it is written whole or not at all."""
        return True


class ReadyServers(Frozen):
    """Servers that are up. Only names travel: the configuration may hold secrets."""

    head_url: str
    """Their head server."""

    agents: tuple[str, ...]
    """Names of the agents they run."""

    policy_model: str | None = None
    """Name of the model that answers; None where the servers do not say."""

    assignment: str = ""
    """Who runs what, by name."""


class ShardSummary(Computed):
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


class AggregateSummary(Computed):
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


class Tally(Computed):
    """Counts of planned rollouts, which add up.

    Collected, failed and missing are all that was planned; scored, unscored and masked
    are all that was collected.
    """

    planned: int
    """Rollouts planned."""

    collected: int
    """Rollouts with a record."""

    scored: int
    """Records whose reward is a finite number and counts."""

    unscored: int
    """Records whose reward is missing, null, text or not finite."""

    masked: int
    """Records whose reward measures nothing, by the server's own word."""

    failed: int
    """Rollouts without a record but with a recorded failure."""

    missing: int
    """Rollouts with neither."""

    unscored_reasons: dict[str, int] = Field(default_factory=dict)
    """What the rewards of unscored records are, and how many."""

    failed_classes: dict[str, int] = Field(default_factory=dict)
    """Class of the last failure of failed rollouts, and how many."""


class AgentSummary(Tally):
    """What one agent's rollouts came to. Unknown is None, never 0."""

    agent: str
    """Name of the agent."""

    num_tasks: int
    """Distinct tasks that it was planned to run."""

    mean_reward: float | None
    """Mean over tasks of the task's mean reward."""

    standard_error: float | None
    """Standard error of that mean, tasks being the sample; None below two tasks."""

    never_pass: int
    """Tasks none of whose scored rollouts passed."""

    sometimes_pass: int
    """Tasks with passes and misses: the ones that can teach."""

    always_pass: int
    """Tasks all of whose scored rollouts passed."""

    undetermined: int = 0
    """Tasks with a single scored rollout, which says nothing of the kind."""

    @property
    def num_scored_tasks(self) -> int:
        """Tasks with at least one scored rollout: the mean's n."""
        told = self.never_pass + self.sometimes_pass + self.always_pass
        return told + self.undetermined


class RunSummary(Tally):
    """What a run came to, over all agents."""

    output: str
    """The rollouts file."""

    agents: tuple[AgentSummary, ...]
    """One for each agent, in order of name."""

    files: tuple[str, ...] = ()
    """The files that were written."""

    mean_reward: float | None = None
    """Mean over the scored tasks of all agents; None when there are none."""

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
    def written(self) -> tuple[str, ...]:
        """The files that were written."""
        return self.files

    @property
    def is_reusable(self) -> bool:
        """Whether it says all that there is to say: it always does."""
        return True

    @property
    def is_partial(self) -> bool:
        """Whether a planned rollout has no score."""
        return self.scored < self.planned


class MergeSummary(Computed):
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


def with_stops(summary: RunSummary, shards: Sequence[ShardSummary]) -> RunSummary:
    """Add why shards ended early, each reason once."""
    reasons = list(dict.fromkeys(shard.stopped for shard in shards if shard.stopped))
    return summary.model_copy(
        update={
            "stopped": "; ".join(reasons) or None,
            "is_failed": any(shard.is_failed for shard in shards),
        }
    )
