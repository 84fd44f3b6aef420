"""One plan, collected by other processes: workers of a pool, and clusters."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import httpx
import orjson
import pytest

from flows.parameters import EMBEDDED_TASKS
from tasks.adapters.lock_holder import living_holder
from tasks.adapters.run_directory import RunFiles
from tests.dag.living import Deployed

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]
Found = Callable[..., list[dict[str, object]]]

POOL = "shards"
PREFECT_FILE = f"""
name: shards
deployments:
  - name: {POOL}
    entrypoint: flows.shard_run.shard_run
    work_pool: {{name: {POOL}}}
"""
ON_WORKERS = (
    "--runner", "work-pool", "--shard-deployment", f"collect-shard/{POOL}",
    "--shard-silence", "5",
)  # fmt: skip


class Workers:
    """Workers of a pool of their own, each collecting one shard at a time."""

    def __init__(self, deployed: Deployed, stack: ExitStack) -> None:
        self._deployed, self._stack = deployed, stack
        self._children: list[subprocess.Popen[bytes]] = []

    def at_least(self, count: int) -> None:
        """Have so many workers."""
        living = [child for child in self._children if child.poll() is None]
        for _ in range(count - len(living)):
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "prefect", "worker", "start",
                 "--pool", POOL, "--type", "process", "--limit", "1"],
                cwd=self._deployed.folder, env=self._deployed.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._stack.enter_context(child)
            self._stack.callback(child.kill)
            self._children.append(child)

    def kill_with(self, pid: int) -> None:
        """Kill a process and the worker that started it, as when a machine is lost."""
        parent = int(
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        )
        (worker,) = [child for child in self._children if child.pid == parent]
        os.kill(worker.pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        worker.wait()


@pytest.fixture(scope="session")
def workers(deployed: Deployed) -> Iterator[Workers]:
    """Give workers of a pool whose deployment collects shards."""
    file = deployed.folder / "shards.yaml"
    file.write_text(PREFECT_FILE)
    deployed.post("work_pools/", {"name": POOL, "type": "process"}).raise_for_status()
    subprocess.run(
        [sys.executable, "-P", "-m", "prefect", "--no-prompt", "deploy", "--all",
         "--prefect-file", file],
        cwd=deployed.folder, env=deployed.env, capture_output=True, check=True,
    )  # fmt: skip
    with ExitStack() as stack:
        yield Workers(deployed, stack)


def until(holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


def keys(path: Path) -> Counter[str]:
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    pairs = [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows]
    return Counter(f"{task}:{repeat}" for task, repeat in pairs)


def profile_bytes(output: Path) -> list[bytes]:
    names = (
        "reward_profiling.jsonl",
        "agent_metrics.json",
        "repeat_level_metrics.json",
    )
    return [output.with_name(f"{output.stem}_{name}").read_bytes() for name in names]


def run_line(servers: httpx.Client, output: Path, *options: str) -> list[str]:
    return [
        "run", "--input", str(EMBEDDED_TASKS), "--head-url", str(servers.base_url),
        "--output", str(output), "--num-repeats", "6", "--concurrency", "6",
        "--num-shards", "2", *options,
    ]  # fmt: skip


def both_begun(output: Path, count: int) -> None:
    """Wait until each of two shards has so many rollouts on disk."""
    parts = [RunFiles(output).shard(index, 2).rollouts for index in (0, 1)]
    until(
        lambda: all(p.exists() and p.read_bytes().count(b"\n") >= count for p in parts),
        f"{count} rollouts of each shard",
    )


@pytest.fixture
def in_process(
    command: Run, servers: httpx.Client, api_url: str, tmp_path: Path
) -> Path:
    """Give the output of the same plan, collected in the run's own process."""
    output = tmp_path / "threads" / "r.jsonl"
    done = command(*run_line(servers, output), PREFECT_API_URL=api_url)
    assert done.returncode == 0, done.stderr
    return output


def test_of_two_workers_one_is_killed_and_nothing_is_lost_or_paid_for_twice(
    workers: Workers,
    start: Start,
    in_process: Path,
    servers: httpx.Client,
    api_url: str,
    tmp_path: Path,
    found: Found,
) -> None:
    workers.at_least(2)
    servers.post("/_knobs", json={"latency_ms": 250}).raise_for_status()
    before = servers.get("/_knobs").json()["requests"]
    output = tmp_path / "pool" / "r.jsonl"

    child = start(*run_line(servers, output, *ON_WORKERS), PREFECT_API_URL=api_url)
    both_begun(output, 5)
    holder = living_holder(RunFiles(output).shard(0, 2).lock)
    assert holder is not None
    workers.kill_with(holder.pid)
    said, _ = child.communicate(timeout=80)

    assert child.returncode == 0, said
    assert "shard 0 of 2 was silent for " in said
    assert keys(output) == keys(output.with_name("r_materialized_inputs.jsonl"))
    paid = servers.get("/_knobs").json()["requests"] - before
    assert 144 <= paid <= 144 + 3  # three of each shard are in flight
    assert profile_bytes(output) == profile_bytes(in_process)
    assert not list(output.parent.glob("*-shard-*"))
    assert not list(output.parent.glob(".*"))
    (table,) = [
        row
        for row in found(
            "artifacts", {"artifacts": {"key": {"any_": ["collect-shards"]}}}
        )
        if "2 of 2 shards ended" in str(row["description"])
    ]
    starts = {row["shard"]: row["starts"] for row in orjson.loads(str(table["data"]))}
    assert starts == {0: 2, 1: 1}


def test_shards_end_with_a_run_that_is_killed_and_another_runner_does_the_rest(
    workers: Workers,
    command: Run,
    start: Start,
    servers: httpx.Client,
    api_url: str,
    tmp_path: Path,
) -> None:
    workers.at_least(2)
    servers.post("/_knobs", json={"latency_ms": 250}).raise_for_status()
    files = RunFiles(tmp_path / "r.jsonl")
    locks = [files.shard(index, 2).lock for index in (0, 1)]

    child = start(
        *run_line(servers, files.rollouts, *ON_WORKERS), PREFECT_API_URL=api_url
    )
    both_begun(files.rollouts, 5)
    child.kill()
    child.wait()
    until(lambda: not any(map(living_holder, locks)), "shards have ended", seconds=15)
    rest = command(*run_line(servers, files.rollouts), PREFECT_API_URL=api_url)

    assert rest.returncode == 0, rest.stderr
    assert keys(files.rollouts) == keys(files.materialized_inputs)
    assert servers.get("/_knobs").json()["requests"] <= 144 + 6


def test_a_signal_stops_the_shards_and_keeps_their_records(
    workers: Workers, start: Start, servers: httpx.Client, api_url: str, tmp_path: Path
) -> None:
    workers.at_least(2)
    servers.post("/_knobs", json={"latency_ms": 250}).raise_for_status()
    output = tmp_path / "r.jsonl"

    child = start(*run_line(servers, output, *ON_WORKERS), PREFECT_API_URL=api_url)
    both_begun(output, 5)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=20)

    assert child.returncode == 130, said
    assert "the collection ended early: the process was told to stop" in said
    assert len(keys(output)) == servers.get("/_knobs").json()["requests"]
    assert not list(output.parent.glob("*-shard-*"))


@pytest.mark.parametrize(
    ("runner", "module", "options"),
    [
        ("dask", "prefect_dask", ()),
        ("ray", "prefect_ray", ()),
        ("slurm", "prefect_submitit",
         ("--runner-settings", '{"execution_mode": "local"}')),
    ],
)  # fmt: skip
def test_a_cluster_gives_the_same_profile_to_the_last_byte(
    command: Run,
    in_process: Path,
    servers: httpx.Client,
    api_url: str,
    tmp_path: Path,
    runner: str,
    module: str,
    options: tuple[str, ...],
) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: the extra [{runner}]")
    output = tmp_path / runner / "r.jsonl"

    line = run_line(servers, output, "--runner", runner, *options)
    done = command(*line, PREFECT_API_URL=api_url)

    assert done.returncode == 0, done.stderr
    assert profile_bytes(output) == profile_bytes(in_process)


def test_an_extra_that_is_missing_is_named_before_anything_starts(
    command: Run, tmp_path: Path
) -> None:
    if find_spec("prefect_dask") is not None:
        pytest.skip("prefect_dask is installed")

    done = command("run", "--demo", "--output", "r.jsonl", "--num-shards", "2",
                   "--runner", "dask")  # fmt: skip

    assert done.returncode == 2
    assert "pip install 'gym-reward-profiling[dask]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_deployment_that_is_not_there_is_told_before_servers_start(
    command: Run, api_url: str, tmp_path: Path
) -> None:
    line = ["run", "--demo", "--output", "r.jsonl", "--num-shards", "2", *ON_WORKERS]

    done = command(*line, "--shard-deployment", "collect-shard/none",
                   PREFECT_API_URL=api_url)  # fmt: skip

    assert done.returncode == 2, done.stderr
    assert "no deployment collect-shard/none; register it with" in done.stderr
    assert not list(tmp_path.glob("r*"))
