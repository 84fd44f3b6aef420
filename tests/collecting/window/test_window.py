"""What a window starts, how many at once, and how it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import orjson
import pytest

from reward_profiling.collecting.dispatcher import Dispatcher
from reward_profiling.collecting.ledger import Ledger
from reward_profiling.collecting.window.recorder import Journals
from reward_profiling.collecting.window.stop_rules import StopRules
from reward_profiling.collecting.window.window import Window
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.planned_rollouts import read_planned
from reward_profiling.stop_scope import StopScope
from tests.collecting.window.parts import ROUTE, Heard, asker, recorder, rows

Reply = Callable[[httpx.Request], Awaitable[httpx.Response]]
GOOD = httpx.Response(200, content=b'{"reward":1.0}')


def window(files: RunFiles, journals: Journals, reply: Reply, **options: Any) -> Window:  # noqa: ANN401
    """Put a window over eight rollouts together, three of them at once."""
    plan = files.materialized_inputs
    keys = ({"_ng_task_index": n, "_ng_rollout_index": 0} for n in range(8))
    lines = (orjson.dumps({**key, "agent_ref": {"name": "a"}}) for key in keys)
    plan.write_bytes(b"\n".join(lines) + b"\n")
    dispatcher = Dispatcher(
        plan, Ledger(), read_planned(plan), lambda _: ROUTE.url, frozenset({ROUTE.url})
    )
    keeping = recorder(journals, Heard(), limit=99)
    asked = asker(reply, keeping, **options)  # type: ignore[arg-type]
    rules = StopRules(
        asked.options,
        keeping.progress,
        keeping.streak,
        asked.gates,
        dispatcher.is_wanted,
    )
    return Window(dispatcher, {"a": ROUTE}, asked.gates, asked, rules, keeping, 3)


class Busy:
    """Answers after a moment, and counts how many it answers at once."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.now = self.most = 0
        self._seconds = seconds

    async def __call__(self, _: httpx.Request) -> httpx.Response:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self._seconds)
        self.now -= 1
        return GOOD


@pytest.mark.anyio
async def test_every_rollout_runs_and_few_at_once(
    files: RunFiles, journals: Journals
) -> None:
    server = Busy()
    sliding = window(files, journals, server)

    await sliding.run(StopScope())

    assert sorted(row["_ng_task_index"] for row in rows(files.rollouts)) == [*range(8)]
    assert server.most == 3
    assert sliding.stop is None


@pytest.mark.anyio
async def test_a_stop_lets_what_runs_finish(
    files: RunFiles, journals: Journals
) -> None:
    sliding, scope = window(files, journals, Busy(0.3)), StopScope()
    running = asyncio.create_task(sliding.run(scope))
    await asyncio.sleep(0.1)

    with scope.may_ask_to_stop() as stop:
        stop("enough")
        await running

    assert len(rows(files.rollouts)) == 3
    assert sliding.stop is not None
    assert (sliding.stop.reason, sliding.stop.is_failure) == ("enough", True)


@pytest.mark.anyio
async def test_a_standing_reason_starts_nothing(
    files: RunFiles, journals: Journals
) -> None:
    sliding, scope = window(files, journals, Busy()), StopScope()

    with scope.may_ask_to_stop() as stop:
        stop("enough")
        await sliding.run(scope)

    assert rows(files.rollouts) == []


@pytest.mark.anyio
async def test_a_rule_that_is_met_ends_the_starts(
    files: RunFiles, journals: Journals
) -> None:
    async def refuse(_: httpx.Request) -> httpx.Response:
        return httpx.Response(422)

    sliding = window(files, journals, refuse, max_failures="0")

    await sliding.run(StopScope())

    assert sliding.stop is not None
    assert sliding.stop.reason.endswith("rollouts failed, more than 0")
    assert 1 <= len(rows(files.failures)) <= 3
