"""The public face: what a notebook imports."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import reward_profiling as rp
from tests.observing import keys, planned, turn, wait_for_lines

ROOT = Path(__file__).parents[2]


def test_every_public_name_is_there() -> None:
    assert {name for name in rp.__all__ if not hasattr(rp, name)} == set()
    assert set(rp.__all__) <= set(dir(rp))


def test_every_public_name_is_documented() -> None:
    for name in set(rp.__all__) - {"EMBEDDED_TASKS"}:
        assert getattr(rp, name).__doc__, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'reward_profiling' has no attribute"):
        rp.colect  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_imports_nothing_of_weight() -> None:
    code = (
        "import sys, reward_profiling;"
        "print(*{'prefect', 'pydantic', 'aiohttp', 'arro3', 'rich'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == ""


@pytest.fixture
def planned_output(tmp_path: Path) -> Path:
    output = tmp_path / "r.jsonl"
    rp.plan(rp.EMBEDDED_TASKS, output, rp.PlanOptions(num_repeats=2, limit=6))
    return output


def test_a_collection_is_awaited_and_done_once(
    planned_output: Path, servers: httpx.Client
) -> None:
    url = str(servers.base_url)

    first = asyncio.run(
        rp.collect(planned_output, url, rp.CollectOptions(concurrency=4))
    )
    again = asyncio.run(rp.collect(planned_output, url))

    assert (first.planned, first.collected, first.missing) == (12, 12, 0)
    assert again.collected == 12
    assert [shard.collected for shard in again.shards] == [0]
    assert keys(planned_output) == planned(planned_output)


def test_a_cancelled_collection_goes_on_later(
    planned_output: Path, servers: httpx.Client
) -> None:
    url, few = str(servers.base_url), rp.CollectOptions(concurrency=2)
    turn(servers, latency_ms=300)

    async def cancelled() -> None:
        collecting = asyncio.create_task(rp.collect(planned_output, url, few))
        await asyncio.to_thread(wait_for_lines, planned_output, 1)
        collecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await collecting

    asyncio.run(cancelled())
    before = keys(planned_output)
    rest = asyncio.run(rp.collect(planned_output, url))

    assert 0 < before.total() < 12
    assert rest.collected == 12
    assert keys(planned_output) == planned(planned_output)


def test_a_watcher_hears_how_it_goes(
    planned_output: Path, servers: httpx.Client
) -> None:
    class Notes(rp.Watcher):
        said: list[str] = []  # noqa: RUF012 - one test's

        def say(self, sentence: str) -> None:
            self.said.append(sentence)

    asyncio.run(rp.collect(planned_output, str(servers.base_url)))
    asyncio.run(rp.collect(planned_output, str(servers.base_url), watcher=Notes()))

    assert Notes.said[-1].startswith("nothing to do")


def test_an_output_without_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rp.RewardProfilingError, match="write the plan"):
        asyncio.run(rp.collect(tmp_path / "r.jsonl", "http://127.0.0.1:9"))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def profiled(planned_output: Path, servers: httpx.Client) -> rp.Output:
    asyncio.run(rp.collect(planned_output, str(servers.base_url)))
    rp.profile(planned_output)
    return rp.open_output(planned_output)


def test_an_output_opens_with_all_that_is_known(profiled: rp.Output) -> None:
    table = pa.table(profiled.rollouts())

    assert table.num_rows == 12
    assert set(table["status"].to_pylist()) == {"scored"}
    assert len(profiled.tasks) == 6
    assert profiled.findings == profiled.insights.findings
    mean = sum(table["reward"].to_pylist()) / 12
    assert profiled.insights.run.reward.micro_mean == pytest.approx(mean)


def test_a_changed_table_is_refused(profiled: rp.Output) -> None:
    path = profiled.files.rollout_metrics
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)

    with pytest.raises(rp.RewardProfilingError, match="rebuild"):
        profiled.rollouts()


def test_what_is_not_there_is_said_with_the_remedy(planned_output: Path) -> None:
    opened = rp.open_output(planned_output)

    with pytest.raises(rp.RewardProfilingError, match="collect it first"):
        opened.rollouts()
    with pytest.raises(rp.RewardProfilingError, match="collect it first"):
        _ = opened.insights


def test_the_notebook_runs(command_env: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "notebook.py"],
        cwd=tmp_path, env={**command_env, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "192 of 192 rollouts collected" in done.stdout
    assert "difference +0.000, n=24 tasks" in done.stdout
    assert list(tmp_path.rglob("rollouts_report.html"))
