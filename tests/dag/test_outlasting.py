"""What a deployed run outlasts: its worker stopped or lost, Prefect's server lost."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import Deployed, Model, PrefectServer, Workers, children_of
from tests.observing import HTTP, asked, is_alive, keys, planned, turn, until

ROOT = Path(__file__).parents[2]
# What `gym env start` is to the run; its server leaves the family, as far as it can.
GYM = """#!/bin/bash
for one in "$@"; do
    case $one in ++head_server.port=*) port=${{one#*.port=}} ;; esac
done
echo "serving on $port"
PYTHONPATH={root} setsid {python} -P -m reward_profiling.demo --port $port \
    --model-url {model} --model m &
echo "$$ $! $port" > {pids}
wait
"""
PLANNED = 96
IN_FLIGHT = 4
SILENCE_SECONDS = 25  # the others end before they miss their second heartbeat, at 30
LATE_SECONDS = 15  # how much later than it should Prefect's server may act
GONE_SECONDS = 15
AWAY_SECONDS = 8


def family_of(pid: int) -> list[int]:
    return [pid, *(one for child in children_of(pid) for one in family_of(child))]


def is_listening(port: int) -> bool:
    try:
        HTTP.get(f"http://127.0.0.1:{port}")
    except httpx.TransportError:
        return False
    return True


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


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
    env = {**command_env, "REWARD_PROFILING_DEMO_TOKEN": "of-the-gym-below"}
    return Deployed.on(server.api, tmp_path_factory.mktemp("outlasting"), env)


@pytest.fixture(scope="module")
def workers(deployed: Deployed) -> Iterator[Workers]:
    """Give a way to have a worker of the deployments, in the background of a script.

    There, shells have processes ignore SIGINT.
    """
    started = Workers(deployed, "/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    yield started
    started.kill()


class Stopped(NamedTuple):
    """A run whose worker was told to stop while it collected."""

    run: str
    output: Path
    model: Model
    worker: subprocess.Popen[bytes]
    family: set[int]
    """The run's process, all that it started, and those that left it."""
    port: int
    at: datetime


@pytest.fixture(scope="module")
def stopped(deployed: Deployed, workers: Workers) -> Iterator[Stopped]:
    """Stop the worker of a run that is in the middle of collecting."""
    gym, pids = deployed.folder / "gym", deployed.folder / "gym.pids"
    output = deployed.folder / "stopped/r.jsonl"
    with Model(seconds=0.7) as model, deployed.impatient(SILENCE_SECONDS):
        gym.write_text(
            GYM.format(root=ROOT, python=sys.executable, model=model.url, pids=pids)
        )
        gym.chmod(0o755)
        worker = workers.one()
        run = start(deployed, output, gym_command=str(gym), gym_config=["a.yaml"])
        until(lambda: len(lines(output)) >= 10, "10 rollouts")
        *left, port = map(int, pids.read_text().split())
        # A run that was cancelled before may still be ending beside this one.
        runs = children_of(worker.pid)
        (process,) = [one for one in runs if left[0] in family_of(one)]
        family = {*family_of(process), *left}
        at = datetime.now(UTC)
        worker.send_signal(signal.SIGTERM)
        yield Stopped(run, output, model, worker, family, port, at)


def start(deployed: Deployed, output: Path, repeats: int = 4, **servers: object) -> str:
    return deployed.run(
        "on-demand", output=str(output), input=str(EMBEDDED_TASKS), servers=servers,
        plan={"num_repeats": repeats}, collect={"concurrency": IN_FLIGHT},
    )  # fmt: skip


def events(deployed: Deployed, run: str, name: str, since: datetime) -> int:
    """Count what Prefect's server heard of a run."""
    wanted = {
        "event": {"name": [name]},
        "resource": {"id": [f"prefect.flow-run.{run}"]},
        "occurred": {"since": since.isoformat()},
    }
    reply = deployed.post("events/filter", {"filter": wanted}).raise_for_status()
    return int(reply.json()["total"])


def test_a_run_outlasts_a_prefect_restart(
    server: PrefectServer, deployed: Deployed, workers: Workers, servers: httpx.Client
) -> None:
    # So slow that the run collects until the server is back and has heard its heart.
    turn(servers, latency_ms=5000)
    output = deployed.folder / "unheard/r.jsonl"
    worker = workers.one()
    run = start(deployed, output, head_url=str(servers.base_url))
    cut = deployed.folder / "unheard-cut/r.jsonl"
    unwanted = start(deployed, cut, repeats=1000, demo=True)
    until(lambda: len(lines(output)) >= IN_FLIGHT, "the first rollouts")
    until(lambda: len(lines(cut)) >= IN_FLIGHT, "the first of the other run")

    server.kill()
    before = len(lines(output))
    time.sleep(AWAY_SECONDS)
    during = len(lines(output))
    server.start()
    back = datetime.now(UTC)
    beat = "prefect.flow-run.heartbeat"
    until(lambda: events(deployed, run, beat, back) > 0, "a heartbeat", seconds=45)
    # Its worker may have lost sight of what is cancelled while the server was away.
    deployed.post(f"flow_runs/{unwanted}/set_state", {"state": {"type": "CANCELLING"}})
    cancelled = deployed.until(unwanted, "Cancelled", "Crashed", seconds=25)
    turn(servers, latency_ms=0)
    state = deployed.until(run, "Completed", "Failed", "Partial", "Crashed")

    said = f"{PLANNED} of {PLANNED} rollouts collected"
    assert during > before
    assert cancelled["name"] == "Cancelled"
    assert set(keys(cut).values()) == {1}
    assert state["message"].startswith(said)
    assert deployed.states(run).count("Running") == 1
    assert keys(output) == planned(output) == asked(servers)
    of_run = {"artifacts": {"flow_run_id": {"any_": [run]}}}
    shown = deployed.post("artifacts/filter", of_run).json()
    page = {one["key"].partition("-of-")[0]: one for one in shown}
    assert page["collect-shard-0"]["data"] == 100
    for name in ("report", "agents"):
        assert page[f"reward-profiling-{name}"]["description"].startswith(said)
    assert worker.poll() is None


def test_a_stopped_worker_leaves_nothing(
    stopped: Stopped,
) -> None:
    until(lambda: not any(map(is_alive, stopped.family)), "all gone", GONE_SECONDS)

    assert len(stopped.family) >= 4
    assert not is_listening(stopped.port)
    assert stopped.worker.wait(GONE_SECONDS) == 0
    kept, answered = keys(stopped.output), stopped.model.answered
    assert answered - IN_FLIGHT <= kept.total() <= answered
    assert set(kept.values()) == {1}


def test_a_run_outlasts_its_killed_worker(
    deployed: Deployed, workers: Workers, servers: httpx.Client
) -> None:
    turn(servers, latency_ms=700)
    output, cut = (deployed.folder / f"{name}/r.jsonl" for name in ("orphan", "cut"))
    worker = workers.one()
    run = start(deployed, output, head_url=str(servers.base_url))
    unwanted = start(deployed, cut, repeats=1000, demo=True)
    until(lambda: min(len(lines(output)), len(lines(cut))) >= 10, "10 rollouts of each")
    family = family_of(worker.pid)

    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    workers.one()
    turn(servers, latency_ms=100)
    deployed.post(f"flow_runs/{unwanted}/set_state", {"state": {"type": "CANCELLING"}})
    cancelled = deployed.until(unwanted, "Cancelled", "Crashed", seconds=GONE_SECONDS)
    state = deployed.until(run, "Completed", "Failed", "Partial", "Crashed")

    assert state["message"].startswith(f"{PLANNED} of {PLANNED} rollouts collected")
    assert deployed.states(run).count("Running") == 1
    assert keys(output) == planned(output) == asked(servers)
    assert cancelled["message"].startswith(f"{keys(cut).total()} of 24000 rollouts")
    assert set(keys(cut).values()) == {1}
    until(lambda: not any(map(is_alive, family)), "all gone", GONE_SECONDS)


def test_a_stopped_workers_run_starts_again(
    deployed: Deployed, workers: Workers, stopped: Stopped
) -> None:
    run, output, model = stopped.run, stopped.output, stopped.model
    until(lambda: not any(map(is_alive, stopped.family)), "all gone", GONE_SECONDS)
    model.seconds = 0
    kept, spent = lines(output)[:10], model.asked - len(lines(output))

    workers.one()
    state = deployed.until(run, "Completed", "Failed", "Partial", seconds=120)

    assert state["message"].startswith(f"{PLANNED} of {PLANNED} rollouts collected")
    assert lines(output)[:10] == kept
    assert keys(output) == planned(output)
    assert spent <= IN_FLIGHT
    assert model.asked == PLANNED + spent
    states = deployed.get("flow_run_states/", flow_run_id=run)
    names = [one["name"] for one in states]
    crash = names.index("Crashed")
    assert names[crash - 1 : crash + 3] == [
        "Running", "Crashed", "Restarting", "AwaitingRetry",
    ]  # fmt: skip
    assert names.count("Running") == 2
    assert states[crash]["message"].startswith("no heartbeat for ")
    silent = datetime.fromisoformat(states[crash]["timestamp"]) - stopped.at
    assert silent.total_seconds() < SILENCE_SECONDS + LATE_SECONDS


def test_a_worker_that_is_interrupted_ends(workers: Workers) -> None:
    worker = workers.one()
    time.sleep(1)

    worker.send_signal(signal.SIGINT)

    assert worker.wait(GONE_SECONDS) == 0
