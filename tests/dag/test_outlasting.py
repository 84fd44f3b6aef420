"""What a deployed run outlasts: its worker stopped or lost, Prefect's server lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from flows.parameters import EMBEDDED_TASKS
from tests.dag.living import Deployed, Model, PrefectServer, Workers

ROOT = Path(__file__).parents[2]
# What `gym env start` is to the run; its server leaves the family, as far as it can.
GYM = """#!/bin/bash
for one in "$@"; do
    case $one in ++head_server.port=*) port=${{one#*.port=}} ;; esac
done
echo "serving on $port"
PYTHONPATH={root} setsid {python} -P -m tasks.demo --port $port \
    --model-url {model} --model m &
echo "$$ $! $port" > {pids}
wait
"""
PLANNED = 96
IN_FLIGHT = 4
SILENCE = 40
"""Seconds; heartbeats come every 30 s."""
LATE = 15
"""Seconds between a moment at which Prefect's server is to act, and its act."""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def family_of(pid: int) -> list[int]:
    return [pid, *(one for child in children_of(pid) for one in family_of(child))]


def is_listening(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}", trust_env=False)
    except httpx.TransportError:
        return False
    return True


def until(holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.1)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def keys(path: Path) -> Counter[str]:
    rows = [json.loads(line) for line in lines(path)]
    pairs = [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows]
    return Counter(f"{task}:{repeat}" for task, repeat in pairs)


def planned(output: Path) -> Counter[str]:
    return keys(output.with_name("r_materialized_inputs.jsonl"))


def asked(servers: httpx.Client) -> Counter[str]:
    return Counter(servers.get("/_knobs").json()["by_key"])


def ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    return process.wait(timeout=seconds)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """Give a Prefect server that may be killed and started again."""
    one = PrefectServer(tmp_path_factory.mktemp("prefect"))
    one.start()
    yield one
    one.kill()


@pytest.fixture(scope="module")
def deployed(
    server: PrefectServer,
    command_env: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Deployed:
    """Register everything on that server."""
    return Deployed.on(server.api, tmp_path_factory.mktemp("outlasting"), command_env)


@pytest.fixture(scope="module")
def workers(deployed: Deployed) -> Iterator[Workers]:
    """Give a way to have a worker of the deployments."""
    started = Workers(deployed)
    yield started
    started.kill()


class Stopped(NamedTuple):
    """A run whose worker was told to stop while it collected."""

    run: str
    output: Path
    model: Model
    worker: subprocess.Popen[bytes]
    family: list[int]
    """The run's process and all that it started; those that left it, too."""
    port: int
    at: float
    """When, since the epoch."""


@pytest.fixture(scope="module")
def stopped(deployed: Deployed, workers: Workers) -> Iterator[Stopped]:
    """Stop the worker of a run that is in the middle of collecting."""
    gym, pids = deployed.folder / "gym", deployed.folder / "gym.pids"
    output = deployed.folder / "stopped/r.jsonl"
    with Model(seconds=0.7) as model, deployed.impatient(SILENCE):
        gym.write_text(
            GYM.format(root=ROOT, python=sys.executable, model=model.url, pids=pids)
        )
        gym.chmod(0o755)
        worker = workers.one()
        run = deployed.run(
            "on-demand", output=str(output), input=str(EMBEDDED_TASKS),
            servers={"gym_command": str(gym), "gym_config": ["a.yaml"]},
            plan={"num_repeats": 4}, collect={"concurrency": IN_FLIGHT},
        )  # fmt: skip
        until(lambda: len(lines(output)) >= 20, "20 rollouts")
        *left, port = map(int, pids.read_text().split())
        (process,) = children_of(worker.pid)
        family = [*family_of(process), *left]
        at = time.time()
        worker.send_signal(signal.SIGTERM)
        yield Stopped(run, output, model, worker, family, port, at)


def test_a_worker_that_is_told_to_stop_ends_and_nothing_of_its_run_stays(
    stopped: Stopped,
) -> None:
    until(lambda: not any(map(is_alive, stopped.family)), "all gone", seconds=15)

    assert len(stopped.family) >= 4
    assert not is_listening(stopped.port)
    assert ended(stopped.worker, 15) == 0
    whole = lines(stopped.output)
    assert stopped.model.answered - IN_FLIGHT <= len(whole) <= stopped.model.answered
    assert set(keys(stopped.output).values()) == {1}


def test_a_run_outlasts_its_worker_that_was_killed_and_started_again(
    deployed: Deployed, workers: Workers, servers: httpx.Client
) -> None:
    servers.post("/_knobs", json={"latency_ms": 700}).raise_for_status()
    output = deployed.folder / "orphaned/r.jsonl"
    worker = workers.one()
    run = deployed.run(
        "on-demand", output=str(output), input=str(EMBEDDED_TASKS),
        servers={"head_url": str(servers.base_url)},
        plan={"num_repeats": 4}, collect={"concurrency": IN_FLIGHT},
    )  # fmt: skip
    until(lambda: len(lines(output)) >= 12, "12 rollouts")

    os.kill(worker.pid, signal.SIGKILL)
    ended(worker, 5)
    workers.one()
    state = deployed.until(run, "Completed", "Failed", "Partial", "Crashed")

    assert state["message"].startswith(f"{PLANNED} of {PLANNED} rollouts collected")
    assert deployed.states(run).count("Running") == 1
    assert keys(output) == planned(output) == asked(servers)


def test_the_run_of_a_stopped_worker_starts_again_in_time_and_does_the_rest(
    deployed: Deployed, workers: Workers, stopped: Stopped
) -> None:
    until(lambda: not any(map(is_alive, stopped.family)), "all gone", seconds=15)
    kept, requests = lines(stopped.output), stopped.model.asked
    workers.one()
    state = deployed.until(
        stopped.run, "Completed", "Failed", "Partial", seconds=SILENCE + 60
    )
    print(deployed.get("flow_run_states/", flow_run_id=stopped.run), stopped.at)
    assert state["message"].startswith(f"{PLANNED} of {PLANNED} rollouts collected")
    print(kept, requests, stopped.model.asked)
