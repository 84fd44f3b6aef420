"""Tasks already made, collected from an environment server that takes episodes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web

from reward_profiling.collecting.aggregation.aggregate_metrics import aggregate
from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.errors import DatasetError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_of
from reward_profiling.servers.options import EMBEDDED_TASKS
from reward_profiling.servers.readiness import read_servers
from reward_profiling.servers.routes import Servers
from reward_profiling.stop_scope import StopScope

Json = dict[str, Any]
pytestmark = pytest.mark.anyio
FLAT: Json = {"responses_create_params": {"input": "flat"}}
STAMPS = ["_ng_task_index", "_ng_rollout_index", "_ng_environment_server"]
STAMPS += ["_ng_result_type"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def made(task: str) -> Json:
    return {
        "task_id": {"taskset": "duels", "task_id": task},
        "task_input": {"responses_create_params": {"input": task}, "task_data": {}},
    }


def result_of(request: Json) -> Json:
    """Answer one episode as the name of its task says."""
    task_id = request["task"]["task_id"]
    task = task_id["task_id"]
    reply = {"episode_id": request["episode_id"], "task_id": task_id}
    failed = {"failure_reason": f"{task}!", "terminal": task == "stops"}
    if task in {"fails", "stops"}:
        return {**reply, "result": None, "failure": {**failed, "stage": "agent"}}
    result = {"reward": float(task == "wins"), "response": {"usage": {"tokens": 3}}}
    return {**reply, "result": result | ({"_ng_x": 1} if task == "lies" else {})}


@asynccontextmanager
async def environment() -> AsyncIterator[tuple[Servers, list[Json]]]:
    """Run one environment server that fronts no agent; gives what it was asked."""
    asked: list[Json] = []

    async def run(request: web.Request) -> web.Response:
        body = await request.json()
        asked.append(body)
        answer = result_of(body) if "episode_id" in body else {"reward": 0.5}
        return web.json_response(answer)

    async def aggregate_metrics(request: web.Request) -> web.Response:
        records = (await request.json())["verify_responses"]
        return web.json_response({"key_metrics": {"n": len(records)}})

    app = web.Application()
    app.router.add_post("/run", run)
    app.router.add_post("/aggregate_metrics", aggregate_metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fields = {"port": runner.addresses[0][1]}
    try:
        yield Servers({"arena": {"environment_servers": {"duel": fields}}}), asked
    finally:
        await runner.cleanup()


def plan(
    folder: Path, *rows: Json, servers: Servers | None = None, **options: object
) -> RunFiles:
    path = folder / "in.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    routes = {"environment_server_routes": {"duels": "arena"}}
    chosen = PlanOptions.made({**routes, **options})
    files = RunFiles(folder / "r.jsonl")
    attribute = servers.attributed_agents if servers else None
    materialize(check_input(path, chosen), files, attribute=attribute)
    return files


async def collect(files: RunFiles, servers: Servers) -> ShardSummary:
    options = CollectOptions(retries=0, concurrency=1)
    shard = open_shard(files, 0, 1, options)
    return await collect_shard(shard, servers, options, StopScope())


def rows(path: Path) -> list[Json]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


async def test_a_made_task_runs_as_an_episode(
    tmp_path: Path,
) -> None:
    files = plan(tmp_path, made("wins"), num_repeats=2)
    async with environment() as (servers, asked):
        summary = await collect(files, servers)

    assert (summary.collected, summary.owed) == (2, 0)
    assert asked == [
        {"episode_id": {"rollout_id": f"0-{i}", "attempt": 0}, "task": made("wins")}
        for i in range(2)
    ]
    record = rows(files.rollouts)[0]
    assert list(record) == ["reward", "response", "_ng_task_id", *STAMPS]
    assert record["_ng_task_id"] == {"taskset": "duels", "task_id": "wins"}
    assert record["_ng_environment_server"] == "arena"
    assert record["_ng_result_type"] == "duel"


async def test_a_failed_episode_is_owed_again(tmp_path: Path) -> None:
    files = plan(tmp_path, made("fails"))
    async with environment() as (servers, asked):
        first = await collect(files, servers)
        await collect(files, servers)

    assert (first.collected, first.failed) == (0, 1)
    assert [body["episode_id"]["attempt"] for body in asked] == [0, 1]
    old, new = rows(files.failures)
    assert old["_ng_failure_class"] == "environment_server_failed"
    assert (old["_ng_failure_message"], old["_ng_failure_stage"]) == ("fails!", "agent")
    assert new["_ng_attempt_index"] == 1


async def test_a_final_failure_is_not_asked_again(
    tmp_path: Path,
) -> None:
    files = plan(tmp_path, made("stops"))
    async with environment() as (servers, asked):
        await collect(files, servers)
        again = await collect(files, servers)

    assert (again.given_up, again.owed, len(asked)) == (1, 0, 1)


async def test_a_result_with_our_names_has_failed(
    tmp_path: Path,
) -> None:
    files = plan(tmp_path, made("lies"), made("wins"))
    async with environment() as (servers, _):
        summary = await collect(files, servers)

    (failure,) = rows(files.failures)
    assert (summary.collected, summary.failed) == (1, 1)
    assert failure["_ng_failure_type"] == "NotAnEpisode"
    assert "uses our own names: _ng_x" in failure["_ng_failure_message"]


async def test_flat_and_made_rows_share_a_server(tmp_path: Path) -> None:
    legacy: Json = {
        "environment_routing_mode": "legacy",
        "environment_server_name": "arena",
    }
    files = plan(tmp_path, FLAT, made("loses"), **legacy)
    async with environment() as (servers, asked):
        summary = await collect(files, servers)

    assert summary.collected == 2
    assert asked[0] == rows(files.materialized_inputs)[0]
    assert "episode_id" in asked[1]
    assert [record["reward"] for record in rows(files.rollouts)] == [0.5, 0.0]


async def test_a_servers_records_go_under_its_name(
    tmp_path: Path,
) -> None:
    files = plan(tmp_path, made("wins"), made("loses"), num_repeats=2)
    async with environment() as (servers, _):
        await collect(files, servers)
        summary = await aggregate(files, servers)

    profiled = profile_run(sources_of(files), ProfileRequest())
    (entry,) = orjson.loads(files.aggregate_metrics.read_bytes())
    assert summary.warnings == ()
    assert entry["agent_ref"] == {"name": "arena"}
    assert entry["key_metrics"] == {"n": 4}
    assert [(a.agent, a.mean_reward) for a in profiled.agents] == [("arena", 0.5)]
    (metrics,) = orjson.loads(files.agent_metrics.read_bytes())
    assert metrics["mean/reward"] == 0.5


async def test_an_unknown_server_is_named_first(
    tmp_path: Path,
) -> None:
    files = plan(tmp_path, made("wins"), environment_server_routes={"duels": "arenna"})
    async with environment() as (servers, asked):
        with pytest.raises(DatasetError) as raised:
            await collect(files, servers)

    assert raised.value.faults == (
        "environment server 'arenna' is unknown; did you mean 'arena'?",
    )
    assert asked == []


async def test_rows_sent_by_name_get_an_agent(
    tmp_path: Path, servers: httpx.Client
) -> None:
    known = await read_servers(str(servers.base_url).rstrip("/"))
    row = orjson.loads(EMBEDDED_TASKS.read_bytes().splitlines()[0])
    agent = row.pop("agent_ref")["name"]
    name = known.routes([agent])[agent].server
    legacy: Json = {
        "environment_routing_mode": "legacy",
        "environment_server_name": name,
    }
    files = plan(tmp_path, row, servers=known, **legacy)

    summary = await collect(files, known)

    (record,) = rows(files.rollouts)
    assert summary.collected == 1
    assert record["_ng_environment_server"] == name
    assert record["agent_ref"] == {"name": agent}
