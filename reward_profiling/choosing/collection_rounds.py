"""Collecting a plan in rounds, which grows by repeats of tasks that are still open."""

from collections.abc import Awaitable, Callable

from reward_profiling.choosing.adaptive_rounds import AdaptiveSummary
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.stop_scope import StopScope

Shards = list[ShardSummary]
"""What each shard came to, in order of index."""


async def collect_rounds(
    collect: Callable[[], Awaitable[Shards]],
    grow: Callable[[], Awaitable[AdaptiveSummary]] | None,
    scope: StopScope,
) -> Shards:
    """Collect what is owed, a round at a time; return the shards of the last one.

    Without `grow`, which plans the next round, there is one. A collection that ended
    early is the last one, too: what it owes comes first when the run is started again.
    """
    while True:
        shards = await collect()
        is_stopped = any(shard.stopped for shard in shards)
        if grow is None or is_stopped or scope.exit_code is not None:
            return shards
        if not (await grow()).num_new:
            return shards
