"""Collect: what a plan owes is asked of running servers; each reply is kept at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    round_in_words,
)
from reward_profiling.choosing.collection_rounds import collect_rounds
from reward_profiling.choosing.plan_extension import grow_plan
from reward_profiling.collecting.aggregation.aggregate_metrics import (
    aggregate as aggregate_output,
)
from reward_profiling.collecting.aggregation.aggregate_summary import AggregateSummary
from reward_profiling.collecting.collection_lock import collection_lock
from reward_profiling.collecting.open_shard import OpenShard, open_shard
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.progress import ObserveProgress, silent
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers import server_sessions
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.stop_scope import StopScope

START_SECONDS = 600.0
_NOTHING_TO_DO = "nothing to do: every planned rollout is collected or given up"


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionSummary:
    """What a collection came to, over all its shards."""

    path: Path
    """The rollouts file."""

    planned: int
    """Rollouts planned."""

    missing: int
    """Planned rollouts without a record."""

    stopped: str | None
    """Why it ended early; None when it came to its end."""

    is_failed: bool
    """Whether it ended early because of failures, rather than of time or a signal."""

    shards: tuple[ShardSummary, ...]
    """What each shard came to, in order of index."""

    @property
    def collected(self) -> int:
        """Planned rollouts with a record."""
        return self.planned - self.missing


class Watcher:
    """Hears how a collection goes. This one says nothing."""

    def say(self, sentence: str) -> None:
        """Hear a sentence about a step."""

    @contextmanager
    def collecting(self) -> Iterator[ObserveProgress]:
        """Yield what hears of every finished rollout, while a round is collected."""
        yield silent


async def collect(  # noqa: PLR0913 - each is an option of the command
    output: Path | str,
    head_url: str,
    options: CollectOptions | None = None,
    *,
    adaptive: AdaptiveOptions | None = None,
    pass_threshold: float = 1.0,
    start_timeout: float = START_SECONDS,
    watcher: Watcher | None = None,
    scope: StopScope | None = None,
) -> CollectionSummary:
    """Collect what a plan still owes, from running servers.

    Args:
        output: The rollouts file; its plan lies beside it.
        head_url: Head server of the running servers, such as http://127.0.0.1:11000.
        options: How owed rollouts are collected.
        adaptive: Whether open tasks get more repeats.
        pass_threshold: What counts as passing for `adaptive`.
        start_timeout: Seconds until every server must be ready.
        watcher: Hears how it goes.
        scope: What may ask it to stop in good order.

    Raises:
        ConfigError: there is no plan, or the options do not go together.
        OutputLockedError: another process writes the output.
        ServersNotReadyError: the servers do not answer in time.
        OutputWriteError: the disk does not take a record.
    """
    files, options = RunFiles(Path(output)), options or CollectOptions()
    adaptive = adaptive or AdaptiveOptions()
    if adaptive.adaptive and options.shard is not None:
        raise ConfigError(
            "--adaptive looks at all shards; collect them in one process, with"
            " --num-shards"
        )
    if not files.materialized_inputs.exists():  # before a lock makes the folder
        raise ConfigError(
            f"{files.materialized_inputs} does not exist; write the plan with"
            " `materialize` first"
        )
    collecting = _Collecting(
        files,
        head_url.rstrip("/"),
        start_timeout,
        options,
        watcher or Watcher(),
        scope or StopScope(),
    )
    with collection_lock(files, options):
        growing = adaptive if adaptive.adaptive else None
        return await collecting.rounds(growing, pass_threshold)


@dataclass(frozen=True, slots=True)
class _Collecting:
    """One collection."""

    files: RunFiles
    head_url: str
    start_timeout: float
    options: CollectOptions
    watcher: Watcher
    scope: StopScope

    async def rounds(
        self, adaptive: AdaptiveOptions | None, pass_threshold: float
    ) -> CollectionSummary:
        """Collect, and go on with more repeats of open tasks where that is asked."""

        async def grow() -> AdaptiveSummary:
            reading = ProfileOptions(pass_threshold=pass_threshold)
            grown = grow_plan(self.files, adaptive or AdaptiveOptions(), reading)
            self.watcher.say(round_in_words(grown))
            return grown

        growing = None if adaptive is None else grow
        shards = await collect_rounds(self._round, growing, self.scope)
        whole = shards[0].path if len(shards) == 1 else self.files.rollouts
        ended = [shard for shard in shards if shard.stopped]
        return CollectionSummary(
            path=Path(whole),
            planned=sum(shard.planned for shard in shards),
            missing=sum(shard.missing for shard in shards),
            stopped=ended[0].stopped if ended else None,
            is_failed=any(shard.is_failed for shard in shards),
            shards=tuple(shards),
        )

    async def _round(self) -> list[ShardSummary]:
        """Collect what is owed."""
        files, options = self.files, self.options
        opened = [open_shard(files, i, n, options) for i, n in options.shards()]
        if any(shard.owed for shard in opened):
            shards = await self._collect(opened)
        else:
            self.watcher.say(_NOTHING_TO_DO)
            shards = [shard.not_collected() for shard in opened]
        if options.shard is None:
            merge_shards(files)
        return shards

    async def _collect(self, opened: Sequence[OpenShard]) -> list[ShardSummary]:
        options, say = self.options, self.watcher.say
        servers = await wait_until_ready(self.head_url, self.start_timeout, say)
        with self.watcher.collecting() as observe:
            shards = await asyncio.gather(
                *(
                    collect_shard(shard, servers, options, self.scope, observe)
                    for shard in opened
                )
            )
        return list(shards)


async def aggregate(
    output: Path | str,
    head_url: str,
    options: AggregateOptions | None = None,
    *,
    start_timeout: float = START_SECONDS,
    watcher: Watcher | None = None,
) -> AggregateSummary:
    """Ask the environment servers for their own metrics over what was collected.

    Args:
        output: The rollouts file.
        head_url: Head server of the running servers.
        options: Which rollouts without a reward count as zero.
        start_timeout: Seconds until every server must be ready.
        watcher: Hears how it goes.

    Raises:
        ConfigError: a file cannot be read.
        ServersNotReadyError: the servers do not answer in time.
    """
    say = (watcher or Watcher()).say
    servers = await wait_until_ready(head_url.rstrip("/"), start_timeout, say)
    files = RunFiles(Path(output))
    return await aggregate_output(files, servers, options or AggregateOptions())


@asynccontextmanager
async def serving(
    servers: ServerOptions, output: Path | str, scope: StopScope | None = None
) -> AsyncIterator[str]:
    """Yield the head server's URL; servers that are started here end with the block.

    Args:
        servers: Where rollouts run: `ServerOptions(demo=True)` is the embedded
            environment, and with `gym_config` Gym's own servers are started.
        output: The rollouts file; what servers print goes to logs beside it.
        scope: Is asked to stop when one of the servers ends before the block.

    Raises:
        ServersNotReadyError: servers could not be started.
        ConfigError: they cannot be started so.
    """
    files = RunFiles(Path(output))
    async with server_sessions.serving(servers, files, scope or StopScope()) as url:
        yield url
