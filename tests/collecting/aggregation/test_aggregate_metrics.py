import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from reward_profiling.collecting.aggregation.aggregate_metrics import aggregate
from reward_profiling.errors import DatasetError, RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.servers.routes import Servers
from reward_profiling.servers.starting.child_processes import embedded_environment

Json = dict[str, Any]
AGENTS = ("number_match_agent", "exact_match_agent")
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(tmp_path / "r.jsonl")


def record(task: int, rollout: int, agent: str | None = "a", **members: object) -> Json:
    named = {} if agent is None else {"agent_ref": {"name": agent}}
    key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
    return {"reward": 1.0, **members, **key, **named}


def write(files: RunFiles, *records: Json) -> None:
    files.rollouts.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))


def entries(files: RunFiles) -> list[Json]:
    read: list[Json] = orjson.loads(files.aggregate_metrics.read_bytes())
    return read


@asynccontextmanager
async def scripted(
    fronts: dict[str, list[str]], answer: object = None, status: int = 200
) -> AsyncIterator[tuple[Servers, list[Json]]]:
    """Run environment servers by name, each in front of some agents.

    Gives the servers, and a list of the bodies that they are asked about.
    """
    asked: list[Json] = []

    async def aggregate_metrics(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response({} if answer is None else answer, status=status)

    app = web.Application()
    app.router.add_post("/aggregate_metrics", aggregate_metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    names = set(itertools.chain(*fronts.values()))
    config: Json = {name: {"responses_api_agents": {"i": {}}} for name in names}
    for server, agents in fronts.items():
        refs = {a: {"type": "responses_api_agents", "name": a} for a in agents}
        config[server] = {"environment_servers": {"legacy": {"port": port, **refs}}}
    try:
        yield Servers(config), asked
    finally:
        await runner.cleanup()


@pytest.fixture
async def demo() -> AsyncIterator[Servers]:
    async with embedded_environment(["--latency-scale", "0"]) as url:
        yield await wait_until_ready(url, 10.0)


async def test_each_environment_server_is_an_entry(
    demo: Servers, files: RunFiles
) -> None:
    write(files, *(record(t, r, a) for t, a in enumerate(AGENTS) for r in range(2)))

    summary = await aggregate(files, demo)

    found = entries(files)
    assert [one["agent_ref"] for one in found] == [{"name": one} for one in AGENTS]
    assert [list(one) for one in found] == [[
        "agent_ref", "_ng_environment_server", "agent_metrics", "key_metrics",
        "group_level_metrics", "repeat_level_metrics",
    ]] * 2  # fmt: skip
    assert found[0]["key_metrics"]["mean/reward"] == 1.0
    assert (summary.num_servers, summary.warnings) == (2, ())


async def test_the_file_has_an_indent_of_two(demo: Servers, files: RunFiles) -> None:
    write(files, record(0, 0, AGENTS[0], reward=0.25), record(0, 1, AGENTS[0]))

    summary = await aggregate(files, demo)

    content = files.aggregate_metrics.read_bytes()
    assert content == orjson.dumps(orjson.loads(content), option=orjson.OPT_INDENT_2)
    assert content.startswith(b'[\n  {\n    "agent_ref": {\n      "name"')
    assert summary.path == str(files.aggregate_metrics)


async def test_records_are_sent_in_key_order(files: RunFiles) -> None:
    keys = [(10, 0), (2, 1), (2, 0), (0, 3)]
    write(files, *(record(*key) for key in keys))

    async with scripted({"env": ["a"]}) as (servers, asked):
        await aggregate(files, servers)

    sent = [
        (one["_ng_task_index"], one["_ng_rollout_index"])
        for one in asked[0]["verify_responses"]
    ]
    assert sent == sorted(keys)


async def test_only_usage_and_cut_reason_are_sent(
    files: RunFiles,
) -> None:
    response = {
        "output": ["long"], "incomplete_details": {"reason": "max_output_tokens"},
        "usage": {"total_tokens": 7},
    }  # fmt: skip
    extra = {"responses_create_params": {}, "ng_trajectory": [], "extracted": "x"}
    write(files, {"response": response, **extra, **record(0, 0)})

    async with scripted({"env": ["a"]}) as (servers, asked):
        await aggregate(files, servers)

    (sent,) = asked[0]["verify_responses"]
    assert list(sent) == [
        "extracted", "reward", "_ng_task_index", "_ng_rollout_index", "agent_ref",
        "response",
    ]  # fmt: skip
    assert list(sent["response"]) == ["usage", "incomplete_details"]


@pytest.mark.parametrize(
    "response", [None, "text", {}, {"usage": None, "incomplete_details": None}]
)
async def test_a_response_with_neither_is_left_out(
    files: RunFiles, response: object
) -> None:
    write(files, record(0, 0, response=response))

    async with scripted({"env": ["a"]}) as (servers, asked):
        await aggregate(files, servers)

    assert "response" not in asked[0]["verify_responses"][0]


async def test_stamps_tell_an_agents_servers_apart(
    files: RunFiles,
) -> None:
    stamps = ("env_1", "env_2", "env_2")
    write(files, *(
        record(task, 0, _ng_environment_server=stamp)
        for task, stamp in enumerate(stamps)
    ))  # fmt: skip

    async with scripted({"env_1": ["a"], "env_2": ["a"]}) as (servers, asked):
        await aggregate(files, servers)

    assert [one["agent_ref"]["name"] for one in entries(files)] == ["env_1", "env_2"]
    assert sorted(len(one["verify_responses"]) for one in asked) == [1, 2]


async def test_the_first_record_labels_its_server(
    files: RunFiles,
) -> None:
    write(files, record(0, 0, "a"), record(1, 0, "b"), record(2, 0, "c"))

    async with scripted({"duel": ["a", "b"], "env": ["c"]}) as (servers, _):
        await aggregate(files, servers)

    assert [
        (one["agent_ref"]["name"], one["_ng_environment_server"])
        for one in entries(files)
    ] == [("a", "duel"), ("c", "env")]


async def test_its_server_names_a_missing_agent(
    files: RunFiles,
) -> None:
    write(files, *(
        record(task, 0, None, _ng_environment_server=server)
        for task, server in enumerate(("env", "duel"))
    ))  # fmt: skip

    async with scripted({"env": ["a"], "duel": ["b", "c"]}) as (servers, asked):
        await aggregate(files, servers)

    assert len(asked) == 2
    assert [one["agent_ref"]["name"] for one in entries(files)] == ["a", "duel"]


async def test_an_ambiguous_label_gives_way(
    files: RunFiles,
) -> None:
    write(files, record(0, 0, "env_2", _ng_environment_server="env_1"),
        record(1, 0, None, _ng_environment_server="env_2"))  # fmt: skip

    async with scripted({"env_1": ["env_2"], "env_2": ["b", "c"]}) as (servers, _):
        await aggregate(files, servers)

    assert [one["agent_ref"]["name"] for one in entries(files)] == ["env_1", "env_2"]


async def test_what_a_server_cannot_do_is_a_warning(
    demo: Servers, files: RunFiles
) -> None:
    good, twice = record(0, 0, AGENTS[0]), record(1, 0, AGENTS[1])
    write(files, good, twice, twice)  # a key that occurs twice is answered with 500

    summary = await aggregate(files, demo)

    assert [one["agent_ref"]["name"] for one in entries(files)] == [AGENTS[0]]
    (warning,) = summary.warnings
    assert warning.startswith("exact_match_environment_server could not aggregate its")
    assert "answered 500" in warning


async def test_a_vanished_server_is_a_warning(
    files: RunFiles,
) -> None:
    write(files, record(0, 0, _ng_environment_server="gone"), record(1, 0))

    async with scripted({"env": ["a"]}) as (servers, _):
        summary = await aggregate(files, servers)

    assert [one["_ng_environment_server"] for one in entries(files)] == ["env"]
    (warning,) = summary.warnings
    assert warning.startswith("gone could not aggregate its metrics: it is not among")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"agent_metrics": []}, 200, "its agent_metrics is not an object"),
        ({"group_level_metrics": None}, 200, "its group_level_metrics is not a list"),
        ([], 200, "the answer is JSON but not an object"),
        ({}, 422, "answered 422"),
    ],
)
async def test_an_odd_answer_leaves_the_old_file(
    files: RunFiles, answer: object, status: int, words: str
) -> None:
    write(files, record(0, 0))
    files.aggregate_metrics.write_bytes(b"[]")

    async with scripted({"env": ["a"]}, answer, status) as (servers, _):
        summary = await aggregate(files, servers)

    assert words in summary.warnings[0]
    assert (summary.path, files.aggregate_metrics.read_bytes()) == (None, b"[]")


async def test_an_empty_answer_is_filled_in(
    files: RunFiles,
) -> None:
    write(files, record(0, 0))

    answer = {"x": 1, "perf_summary": {"p": 1}}
    async with scripted({"env": ["a"]}, answer) as (servers, _):
        await aggregate(files, servers)

    assert entries(files) == [{
        "agent_ref": {"name": "a"}, "_ng_environment_server": "env",
        "agent_metrics": {}, "key_metrics": {}, "group_level_metrics": [],
        "repeat_level_metrics": [], "perf_summary": {"p": 1},
    }]  # fmt: skip


@pytest.mark.parametrize("content", [None, b"", b"\n"])
async def test_nothing_is_asked_about_nothing(
    files: RunFiles, content: bytes | None
) -> None:
    if content is not None:
        files.rollouts.write_bytes(content)

    async with scripted({"env": ["a"]}) as (servers, asked):
        summary = await aggregate(files, servers)

    assert (asked, summary.path, summary.num_servers) == ([], None, 0)


async def test_an_unknown_agent_is_an_error(
    files: RunFiles,
) -> None:
    write(files, record(0, 0, "aa"))

    async with scripted({"env": ["a"]}) as (servers, _):
        with pytest.raises(DatasetError, match="did you mean 'a'"):
            await aggregate(files, servers)


@pytest.mark.parametrize(
    "line", [b'{"_ng_task_index":0', b'{"agent_ref":{"name":"a"}}', b"[]"]
)
async def test_an_unreadable_line_is_named(files: RunFiles, line: bytes) -> None:
    write(files, record(0, 0))
    files.rollouts.write_bytes(files.rollouts.read_bytes() + line)

    async with scripted({"env": ["a"]}) as (servers, _):
        with pytest.raises(RecordError, match=r"r\.jsonl:2: "):
            await aggregate(files, servers)
