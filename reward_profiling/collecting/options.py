"""How owed rollouts are collected, and what counts as zero, as people set it."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le

from reward_profiling.collecting.budgets import PATTERN, FailureBudget
from reward_profiling.errors import ConfigError
from reward_profiling.fitting import ReadAs, matching_text
from reward_profiling.numerics.durations import seconds_from
from reward_profiling.values import Checked, Seconds

_MAX_SHARDS = 65_536
_SHARD = matching_text(r"^\d+/\d+$", "I/N, such as 0/4")
Dispatch = Literal["plan", "interleaved", "longest-first"]


def _budget(given: object) -> object:
    if isinstance(given, str):
        FailureBudget.parse(given)
    return given


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectOptions(Checked):
    """How owed rollouts are collected.

    Durations are seconds, or text such as "90s", "15m", "4h" or "4:00:00".
    """

    concurrency: Annotated[int, Ge(1), Le(65536)] = 64
    """Rollouts in flight at most, over all shards of this run together."""

    num_shards: Annotated[int, Ge(1), Le(1024)] = 1
    """Parts that the plan is dealt into, collected side by side. More than one writes
    a file for each and merges them."""

    shard: Annotated[str, _SHARD] | None = None
    """Collect only shard I of N, as "I/N" with I from 0: for several processes or
    machines on one output. `merge` puts the shards together."""

    dispatch: Dispatch = "plan"
    """Order in which rollouts start: as planned, repeat by repeat over all tasks, or
    the tasks that took longest in earlier runs first."""

    rollout_timeout: Seconds = 3600.0
    """How long one rollout may take, its retries included; then it is a failure."""

    retries: Annotated[int, Ge(0), Le(100)] = 4
    """Times that a rollout is asked for again within the run when a server is away or
    busy (transport faults, 408, 425, 429, 5xx). With 0, no request whose reply was
    lost is sent again."""

    max_attempts: Annotated[int, Ge(1)] = 3
    """Recorded failures, over all runs of this output, after which a rollout is given
    up."""

    retry_given_up: bool = False
    """Try once more what was given up."""

    max_failures: Annotated[str, ReadAs(_budget, PATTERN)] | None = None
    """Stop when more rollouts than this fail in this run: a count, such as "10", or a
    share of those finished, such as "10%", judged from ten on. Default: no bound."""

    identical_failures: Annotated[int, Ge(2)] = 10
    """Stop when so many rollouts fail one after another with the same words, of half as
    many tasks or all of a smaller plan; they are not counted as attempts. Errors about
    single requests (400, 413, 422, context length) are, and stop nothing once any
    rollout has succeeded."""

    time_budget: Annotated[float, Ge(0), ReadAs(seconds_from)] | None = None
    """Stop collecting after this long. No rollout is started that is not likely to
    finish in time; 0 starts none."""

    allow_unsupported_pairing: bool = False
    """Run rows on agents that their verifier does not declare support for."""

    server_patience: Seconds = 600.0
    """How long to wait for a server that does not answer, when there is nothing else to
    do. Its rollouts stay owed."""

    def check(self) -> None:
        """Refuse a shard that is not one of N, and both ways to have shards.

        Raises:
            ConfigError: it is so.
        """
        if self.shard is None:
            return
        index, count = self.shard_of
        if not index < count <= _MAX_SHARDS:
            last = min(count, _MAX_SHARDS) - 1
            raise ConfigError(
                f"shard {self.shard}: I/N runs from 0/N to {last}/N, and N to"
                f" {_MAX_SHARDS}"
            )
        if self.num_shards > 1:
            raise ConfigError("give shard or num_shards, not both")

    def allows_any_pairing(self, variable: str) -> bool:
        """Say whether pairings are left unchecked; `variable` is the environment's.

        Gym's variable is a flag by its value: "0", "false" and "" leave the check on.
        """
        is_set = variable.strip().lower() in {"1", "true", "yes", "on"}
        return self.allow_unsupported_pairing or is_set

    @property
    def shard_of(self) -> tuple[int, int]:
        """The one shard to collect and how many there are, as (index, count)."""
        index, _, count = (self.shard or "0/1").partition("/")
        return int(index), int(count)

    def shards(self) -> list[tuple[int, int]]:
        """Return the shards that this run collects, as (index, count)."""
        if self.shard is not None:
            return [self.shard_of]
        return [(index, self.num_shards) for index in range(self.num_shards)]

    def concurrency_of(self, index: int) -> int:
        """Return how many rollouts shard `index` of this run may have in flight.

        Shares differ by one at most and sum to `concurrency`, but each is at least 1.
        """
        if self.shard is not None:
            return self.concurrency
        share, left = divmod(self.concurrency, self.num_shards)
        return max(1, share + (index < left))

    def of_shard(self, index: int) -> Self:
        """Return what collects shard `index` of this run by itself, elsewhere."""
        return replace(
            self,
            shard=f"{index}/{self.num_shards}",
            num_shards=1,
            concurrency=self.concurrency_of(index),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregateOptions(Checked):
    """Which rollouts without a reward count as zero in the servers' own metrics.

    Only in those metrics; no record is changed, and the profile counts no zeros.
    """

    count_failure_classes_as_zero: tuple[str, ...] = ()
    """Failure classes whose rollouts count as zero, such as agent_run_error."""

    count_missing_rollouts_as_zero: bool = False
    """Count planned rollouts that left neither a record nor a failure as zero."""
