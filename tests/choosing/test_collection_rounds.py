"""Rounds of an adaptive collection, and what makes one the last."""

import pytest

from reward_profiling.choosing.adaptive_rounds import AdaptiveSummary
from reward_profiling.choosing.collection_rounds import Shards, collect_rounds
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.stop_scope import StopScope


def shard(stopped: str | None = None) -> ShardSummary:
    return ShardSummary(
        path="r.jsonl", shard_index=0, num_shards=1, planned=2, found=0, collected=2,
        failed=0, given_up=0, stopped=stopped,
    )  # fmt: skip


def grown(num_new: int) -> AdaptiveSummary:
    return AdaptiveSummary(
        num_new=num_new, num_tasks=1, num_settled=0, num_exhausted=0, num_open=1,
        planned=2, uniform=2, is_out_of_budget=False,
    )  # fmt: skip


class Plan:
    """A plan that grows so often, and counts the rounds that it was collected in."""

    def __init__(self, *growth: int, stopped_in: int | None = None) -> None:
        self.rounds = 0
        self._growth = iter(growth)
        self._stopped_in = stopped_in

    async def collect(self) -> Shards:
        self.rounds += 1
        return [shard("time" if self.rounds == self._stopped_in else None)]

    async def grow(self) -> AdaptiveSummary:
        return grown(next(self._growth))


@pytest.mark.anyio
async def test_a_plan_that_stays_has_one_round() -> None:
    plan = Plan(3)

    await collect_rounds(plan.collect, None, StopScope())

    assert plan.rounds == 1


@pytest.mark.anyio
async def test_rounds_go_on_while_the_plan_grows() -> None:
    plan = Plan(3, 1, 0)

    await collect_rounds(plan.collect, plan.grow, StopScope())

    assert plan.rounds == 3


@pytest.mark.anyio
async def test_an_early_end_is_the_last_round() -> None:
    plan = Plan(3, 3, 3, stopped_in=2)

    shards = await collect_rounds(plan.collect, plan.grow, StopScope())

    assert plan.rounds == 2
    assert [one.stopped for one in shards] == ["time"]
