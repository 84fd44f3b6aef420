"""The rounds of a run: collect and merge the shards, then extend the plan if needed."""

from reward_profiling.choosing.adaptive_rounds import AdaptiveSummary
from reward_profiling.choosing.collection_rounds import Shards, collect_rounds
from reward_profiling.choosing.plan_extension import wants_more
from reward_profiling.collecting.settlement import owes_nothing
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.spreading.spread_shards import collect_shards
from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.grow_plan import grow_plan
from reward_profiling.tasks.merge_shards import merge_shards
from reward_profiling.tasks.shared.present_run import present_run


def has_nothing_to_do(
    params: RewardProfilingParams, files: RunFiles, checked: CheckedInput
) -> bool:
    """Return whether nothing is owed and no open task needs more repeats."""
    if not owes_nothing(checked, files, params.collect):
        return False
    return not wants_more(files, params.adaptive, params.profile)


async def collected(
    params: RewardProfilingParams, files: RunFiles, servers: Servers
) -> Shards:
    """Collect what is owed and merge it; return what the shards of the last round did.

    Raises:
        ConfigError: there is no plan, or it names unknown agents.
        RecordError: the plan or a shard's file cannot be read.
        RewardProfilingError: not one of the shards that run elsewhere could begin.
    """

    async def collect() -> Shards:
        shards = await collect_shards(files, params.collect, servers, params.spread)
        if files.shards():  # of this run, or of one that was killed
            await merge_shards(files, shards)
        return shards

    async def grow() -> AdaptiveSummary:
        return await grow_plan(files, params.adaptive, params.profile)

    growing = grow if params.adaptive.adaptive else None
    return await collect_rounds(collect, growing, present_run().scope)
