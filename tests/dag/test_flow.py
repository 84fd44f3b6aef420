"""The flow in this process, on the embedded environment and a real Prefect server."""

import asyncio
import gc
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import orjson
import pytest
from prefect import Flow
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.reward_profiling import reward_profiling
from reward_profiling.planning.options import PlanOptions
from reward_profiling.servers.options import EMBEDDED_TASKS, ServerOptions
from tests.dag.living import BROWSER, browse

Found = Callable[..., list[dict[str, object]]]

DEMO = ServerOptions(demo=True)
STEPS = {
    "start_servers", "materialize_inputs", "collect_shard",
    "aggregate_metrics", "profile_rewards", "derive_insights", "publish_profile",
}  # fmt: skip


class Conducted(NamedTuple):
    """A flow run that ended."""

    state: State[Any]
    flow_run_id: UUID
    output: Path


async def _state_of(params: RewardProfilingParams, flow: Flow[Any, Any]) -> State[Any]:
    running: Any = flow(params, return_state=True)
    state: State[Any] = await running
    return state


def conduct(
    output: Path,
    *,
    repeats: int,
    shards: int = 1,
    adaptive: AdaptiveOptions | None = None,
) -> Conducted:
    params = RewardProfilingParams(
        output=output,
        servers=DEMO,
        plan=PlanOptions(num_repeats=repeats),
        adaptive=adaptive or AdaptiveOptions(),
        collect=CollectOptions(num_shards=shards),
    )
    return conducted(params)


def conducted(
    params: RewardProfilingParams, flow: Flow[Any, Any] = reward_profiling
) -> Conducted:
    with warnings.catch_warnings():
        # Prefect leaves sockets to its server for the garbage collector to close.
        warnings.simplefilter("ignore", ResourceWarning)
        state = asyncio.run(_state_of(params, flow))
        gc.collect()
    flow_run_id = state.state_details.flow_run_id
    assert flow_run_id is not None
    return Conducted(state, flow_run_id, params.output)


@pytest.fixture(scope="session")
def once(api_url: str, tmp_path_factory: pytest.TempPathFactory) -> Conducted:
    """Give a run of one repeat."""
    assert api_url
    return conduct(tmp_path_factory.mktemp("once") / "r.jsonl", repeats=1)


@pytest.fixture(scope="session")
def grown(once: Conducted) -> Conducted:
    """Give the same output, run again with four repeats."""
    assert FlowRunContext.get() is None
    return conduct(once.output, repeats=4)


@pytest.fixture
def steps(found: Found) -> Callable[[Conducted], list[str]]:
    """Give a way to name a run's task runs, by the step they ran."""

    def named(conducted: Conducted, count: int = len(STEPS)) -> list[str]:
        wanted = {"flow_runs": {"id": {"any_": [str(conducted.flow_run_id)]}}}
        deadline = time.monotonic() + 20
        # The server records task runs a moment after they ended.
        while len(runs := found("task_runs", wanted)) < count:
            assert time.monotonic() < deadline, "task runs were not recorded in time"
            time.sleep(0.1)
        assert {run["state_type"] for run in runs} <= {"COMPLETED", "RUNNING"}
        return sorted(str(run["task_key"]).rpartition("-")[0] for run in runs)

    return named


def profile_bytes(output: Path) -> list[bytes]:
    endings = (
        "_reward_profiling.jsonl",
        "_agent_metrics.json",
        "_repeat_level_metrics.json",
    )
    return [output.with_name(output.stem + ending).read_bytes() for ending in endings]


def test_a_whole_run_tells_what_it_collected(
    once: Conducted,
) -> None:
    summary = asyncio.run(once.state.aresult())

    assert (once.state.type, once.state.name) == (StateType.COMPLETED, "Completed")
    assert str(once.state.message).startswith("24 of 24 rollouts collected; mean ")
    assert (summary.planned, summary.collected, summary.is_partial) == (24, 24, False)
    assert once.output.read_bytes().count(b"\n") == 24


def test_each_step_is_one_task_run(
    once: Conducted, grown: Conducted, steps: Callable[..., list[str]]
) -> None:
    assert str(grown.state.message).startswith("96 of 96 rollouts collected; mean ")
    assert steps(once) == steps(grown) == sorted(STEPS)


def test_more_repeats_keep_old_records(once: Conducted, grown: Conducted) -> None:
    records = [orjson.loads(line) for line in grown.output.read_bytes().splitlines()]
    keys = [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in records]

    assert once.output == grown.output
    assert {repeat for _, repeat in keys[:24]} == {0}
    assert sorted(keys) == [(task, repeat) for task in range(24) for repeat in range(4)]


def test_open_tasks_get_repeats_in_rounds(
    tmp_path: Path, api_url: str, steps: Callable[..., list[str]]
) -> None:
    del api_url
    adaptive = AdaptiveOptions(adaptive=True, max_repeats=6)
    output = tmp_path / "rollouts.jsonl"
    first = conduct(output, repeats=2, shards=2, adaptive=adaptive)

    plan = output.with_name("rollouts_materialized_inputs.jsonl")
    repeats = Counter(
        orjson.loads(line)["_ng_task_index"]
        for line in output.read_bytes().splitlines()
    )
    assert repeats.total() == len(plan.read_bytes().splitlines())
    assert set(repeats.values()) <= {2, 3, 4, 6}
    assert repeats.most_common(1)[0][1] == 6  # what never passes stays open
    assert min(repeats.values()) == 2  # what passed once of two is settled at once
    assert steps(first, 20).count("grow_plan") > 1

    records = output.read_bytes()
    second = conduct(output, repeats=2, shards=2, adaptive=adaptive)
    assert "collect_shard" not in steps(second, 3)
    assert output.read_bytes() == records


def test_the_run_is_named_by_a_sentence(grown: Conducted, found: Found) -> None:
    (run,) = found(
        "flow_runs", {"flow_runs": {"id": {"any_": [str(grown.flow_run_id)]}}}
    )

    assert run["name"] == f"4 repeats of tasks into {grown.output}"


def test_the_page_shows_the_files_numbers(grown: Conducted, found: Found) -> None:
    of_run = {"flow_run_id": {"any_": [str(grown.flow_run_id)]}}
    rows = found("artifacts", {"artifacts": of_run})
    shown = {str(row["key"]).partition("-of-")[0]: row for row in rows}
    agents = orjson.loads(grown.output.with_name("r_agent_metrics.json").read_bytes())

    progress = shown["collect-shard-0"]
    table = shown["reward-profiling-agents"]
    report = shown["reward-profiling-report"]
    assert (progress["type"], progress["data"]) == ("progress", 100)
    assert str(progress["description"]).startswith("96/96 done, mean reward 0.")
    assert table["description"] == report["description"] == grown.state.message
    rows = orjson.loads(str(table["data"]))
    assert [row["agent"] for row in rows] == [a["agent_ref"]["name"] for a in agents]
    for row, agent in zip(rows, agents, strict=True):
        assert (row["planned"], row["scored"], row["failed"]) == ("32", "32", "0")
        assert row["mean reward"].split(" ± ")[0] == f"{agent['mean/reward']:.3f}"
        assert row["mean reward"].endswith("(n=8 tasks)")
        assert row["pass rate"].endswith("(n=8 tasks)")
        assert row["tasks with signal"].endswith(" of 8)")
        assert row["mean reward"] in str(report["data"])
    assert str(report["data"]).startswith("### 96 of 96 rollouts collected; mean ")
    assert f"In `{grown.output.parent}`:" in str(report["data"])
    slowest = orjson.loads(str(shown["reward-profiling-slowest"]["data"]))
    seconds = [float(row["seconds"]) for row in slowest]
    assert seconds == sorted(seconds, reverse=True)
    assert "reward-profiling-failures" not in shown


def test_the_profile_ignores_the_shard_count(
    grown: Conducted, tmp_path: Path, steps: Callable[..., list[str]]
) -> None:
    dealt = conduct(tmp_path / "r.jsonl", repeats=4, shards=3)

    assert profile_bytes(dealt.output) == profile_bytes(grown.output)
    assert steps(dealt, len(STEPS) + 3) == sorted(
        [*STEPS, "collect_shard", "collect_shard", "merge_shards"]
    )
    assert list(tmp_path.glob("*-shard-*")) == []


def test_leftover_shards_are_merged_later(
    tmp_path: Path, steps: Callable[..., list[str]]
) -> None:
    output = conduct(tmp_path / "r.jsonl", repeats=1).output
    whole = profile_bytes(output)
    records = output.read_bytes().splitlines(keepends=True)
    # As after a kill of two shards: some records merged, some not, one not yet asked.
    output.write_bytes(b"".join(records[:10]))
    left = output.with_name("r-shard-0-of-2.jsonl")
    left.write_bytes(b"".join(records[10:23]))

    again = conduct(output, repeats=1)

    assert again.state.type == StateType.COMPLETED
    assert steps(again, len(STEPS) + 1) == sorted([*STEPS, "merge_shards"])
    found = output.read_bytes().splitlines(keepends=True)
    assert len(found) == len(records)
    assert set(records[:23]) < set(found)
    assert not left.exists()
    assert profile_bytes(output) == whole


def test_a_flow_retry_does_only_what_is_owed(
    api_url: str, servers: httpx.Client, tmp_path: Path
) -> None:
    assert api_url
    knobs = {"fail_status": 500, "fail_match": "capital of Australia", "fail_first": 1}
    servers.post("/_knobs", json=knobs).raise_for_status()
    params = RewardProfilingParams(
        output=tmp_path / "r.jsonl",
        input=EMBEDDED_TASKS,
        servers=ServerOptions(head_url=str(servers.base_url)),
        collect=CollectOptions(retries=0),
    )

    ended = conducted(params, reward_profiling.with_options(retries=1))

    assert str(ended.state.message).startswith("24 of 24 rollouts collected")
    asked = servers.get("/_knobs").json()["by_key"]
    assert sorted(asked.values()) == [1] * 23 + [2]


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: no page drawn")
def test_a_browser_draws_run_and_report(
    grown: Conducted, found: Found, api_url: str, tmp_path: Path
) -> None:
    of_run = {"flow_run_id": {"any_": [str(grown.flow_run_id)]}}
    wanted = {**of_run, "type": {"any_": ["markdown"]}}
    (report,) = found("artifacts", {"artifacts": wanted})
    server, picture = api_url.removesuffix("/api"), tmp_path / "run.png"

    browse(f"{server}/runs/flow-run/{grown.flow_run_id}", f"--screenshot={picture}")
    page = browse(f"{server}/runs/flow-run/{grown.flow_run_id}", "--dump-dom")
    text = browse(f"{server}/artifacts/artifact/{report['id']}", "--dump-dom")

    assert picture.stat().st_size > 30_000  # an empty page takes a few
    assert f"4 repeats of tasks into {grown.output}" in page
    assert "Completed" in page
    assert "96 of 96 rollouts collected; mean reward" in text
    assert "multiple_choice_agent</td>" in text
    assert "tasks with signal" in text
    for heading in ("Slow rollouts", "Files"):
        assert f"{heading}</h2>" in text
