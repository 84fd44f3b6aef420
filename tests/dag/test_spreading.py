"""One plan, collected by other processes: workers of a pool, and clusters."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import httpx
import orjson
import pytest

from reward_profiling.files.locking.lock_holder import living_holder
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import COMMAND, Deployed
from tests.observing import keys, turn, until

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]
Found = Callable[..., list[dict[str, object]]]

POOL = "shards"
IDLE = "idle"  # a pool without a worker
PREFECT_FILE = f"""
name: shards
deployments:
  - name: {POOL}
    entrypoint: reward_profiling.flows.shard_run.shard_run
    work_pool: {{name: {POOL}}}
  - name: {IDLE}
    entrypoint: reward_profiling.flows.shard_run.shard_run
    work_pool: {{name: {IDLE}}}
"""
ON_WORKERS = (
    "--runner", "work-pool", "--shard-deployment", f"collect-shard/{POOL}",
    "--shard-silence", "5",
)  # fmt: skip


PLAN = ("--num-repeats", "6", "--concurrency", "6", "--num-shards", "2")


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
    for pool in (POOL, IDLE):
        made = deployed.post("work_pools/", {"name": pool, "type": "process"})
        made.raise_for_status()
    subprocess.run(
        [sys.executable, "-P", "-m", "prefect", "--no-prompt", "deploy", "--all",
         "--prefect-file", file],
        cwd=deployed.folder, env=deployed.env, capture_output=True, check=True,
    )  # fmt: skip
    with ExitStack() as stack:
        yield Workers(deployed, stack)


def has_records(path: Path) -> bool:
    return path.exists() and path.read_bytes().count(b"\n") >= 5


def profile_bytes(output: Path) -> list[bytes]:
    names = (
        "reward_profiling.jsonl",
        "agent_metrics.json",
        "repeat_level_metrics.json",
    )
    return [output.with_name(f"{output.stem}_{name}").read_bytes() for name in names]


class Case(NamedTuple):
    """One run of 144 rollouts, 6 in flight, in two shards."""

    start: Start
    servers: httpx.Client
    api_url: str
    output: Path

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """Start the run, and wait until each of its shards has records.

        A shard takes 48 s, so that none ends while a late worker starts another.
        """
        turn(self.servers, latency_ms=2000)
        child = self._started(*options)
        parts = [RunFiles(self.output).shard(index, 2).rollouts for index in (0, 1)]
        until(lambda: all(map(has_records, parts)), "records of each shard")
        return child

    def begin_elsewhere(self, deployment: str) -> subprocess.Popen[str]:
        """Start the run with its shards on workers of another deployment."""
        return self._started("--runner", "work-pool", "--shard-deployment", deployment)

    def _started(self, *options: str) -> subprocess.Popen[str]:
        where = ["--input", str(EMBEDDED_TASKS), "--head-url",
                 str(self.servers.base_url)]  # fmt: skip
        line = ["run", *where, "--output", str(self.output), *PLAN, *options]
        return self.start(*line, PREFECT_API_URL=self.api_url)

    @property
    def requests(self) -> int:
        return int(self.servers.get("/_knobs").json()["requests"])


@pytest.fixture
def case(start: Start, servers: httpx.Client, api_url: str, tmp_path: Path) -> Case:
    return Case(start, servers, api_url, tmp_path / "pool" / "r.jsonl")


@pytest.fixture(scope="session")
def reference(
    command_env: dict[str, str],
    api_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[bytes]:
    """Give the profile of the same plan, collected in the run's own process."""
    output = tmp_path_factory.mktemp("threads") / "r.jsonl"
    env = {**command_env, "PREFECT_API_URL": api_url}
    line = [COMMAND, "run", "--demo", "--output", str(output), *PLAN]
    subprocess.run(line, env=env, capture_output=True, check=True)
    return profile_bytes(output)


def test_a_killed_worker_loses_nothing(
    workers: Workers, case: Case, reference: list[bytes], found: Found
) -> None:
    workers.at_least(2)

    child = case.begin(*ON_WORKERS)
    holder = living_holder(RunFiles(case.output).shard(0, 2).lock)
    assert holder is not None
    workers.kill_with(holder.pid)
    turn(case.servers, latency_ms=50)
    said, _ = child.communicate(timeout=80)

    assert child.returncode == 0, said
    assert "shard 0 of 2 was silent for " in said
    assert keys(case.output) == keys(RunFiles(case.output).materialized_inputs)
    assert case.requests <= 144 + 3  # three of each shard are in flight
    assert profile_bytes(case.output) == reference
    assert not list(case.output.parent.glob("*-shard-*"))
    assert not list(case.output.parent.glob(".*"))
    tables = found("artifacts", {"artifacts": {"key": {"like_": "collect-shards-of-"}}})
    (table,) = [t for t in tables if "2 of 2 shards ended" in str(t["description"])]
    starts = {row["shard"]: row["starts"] for row in orjson.loads(str(table["data"]))}
    assert starts == {0: 2, 1: 1}


def test_a_signal_keeps_the_shards_records(workers: Workers, case: Case) -> None:
    workers.at_least(2)

    child = case.begin(*ON_WORKERS)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=20)

    assert child.returncode == 130, said
    assert "the collection ended early: the process was told to stop" in said
    assert len(keys(case.output)) == case.requests
    assert not list(case.output.parent.glob("*-shard-*"))


def test_a_run_can_stop_before_any_shard(workers: Workers, case: Case) -> None:
    del workers  # whose fixture deploys
    child = case.begin_elsewhere(f"collect-shard/{IDLE}")
    until(RunFiles(case.output).materialized_inputs.exists, "the plan")
    time.sleep(3)  # the shards are submitted, and wait

    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=30)

    assert child.returncode == 130, said
    assert "Traceback" not in said
    assert "0 of 144 rollouts collected" in said
    assert case.output.read_bytes() == b""
    assert case.requests == 0


class Cluster(NamedTuple):
    runner: str
    module: str
    options: tuple[str, ...] = ()


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster("dask", "prefect_dask"),
        Cluster("ray", "prefect_ray"),
        Cluster("slurm", "prefect_submitit",
                ("--runner-settings", '{"execution_mode": "local"}')),
    ],
    ids=lambda cluster: cluster.runner,
)  # fmt: skip
def test_a_cluster_gives_the_same_bytes(
    command: Run, reference: list[bytes], api_url: str, tmp_path: Path, cluster: Cluster
) -> None:
    if find_spec(cluster.module) is None:
        pytest.skip(f"{cluster.module} is not installed: extra [{cluster.runner}]")

    line = ["run", "--demo", "--output", "r.jsonl", *PLAN, "--runner", cluster.runner]
    done = command(*line, *cluster.options, PREFECT_API_URL=api_url)

    assert done.returncode == 0, done.stderr
    assert profile_bytes(tmp_path / "r.jsonl") == reference


def test_a_missing_extra_is_named_first(command: Run, tmp_path: Path) -> None:
    if find_spec("prefect_dask") is not None:
        pytest.skip("prefect_dask is installed")

    done = command("run", "--demo", "--output", "r.jsonl", "--num-shards", "2",
                   "--runner", "dask")  # fmt: skip

    assert done.returncode == 2
    assert "pip install 'gym-reward-profiling[dask]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_deployment_is_told_first(
    command: Run, api_url: str, tmp_path: Path
) -> None:
    line = ["run", "--demo", "--output", "r.jsonl", *PLAN, "--runner", "work-pool"]

    done = command(*line, "--shard-deployment", "collect-shard/none",
                   PREFECT_API_URL=api_url)  # fmt: skip

    assert done.returncode == 2, done.stderr
    assert "no deployment collect-shard/none; register it with" in done.stderr
    assert not list(tmp_path.glob("r*"))
