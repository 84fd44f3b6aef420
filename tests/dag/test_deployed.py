"""What is deployed, run by a real worker: asked for, cancelled, killed, resumed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import BROWSER, Deployed, Hook, Workers, browse, children_of
from tests.observing import asked, is_alive, keys, turn, until

DEMO = {"demo": True}


def collected(output: Path, count: int) -> None:
    until(
        lambda: output.exists() and output.read_bytes().count(b"\n") >= count,
        f"{count} rollouts in {output}",
    )


def on(servers: httpx.Client) -> dict[str, Any]:
    return {
        "servers": {"head_url": str(servers.base_url)},
        "input": str(EMBEDDED_TASKS),
    }


@pytest.fixture
def slow_servers(servers: httpx.Client) -> httpx.Client:
    """Give an environment in which each rollout takes a while."""
    turn(servers, latency_ms=700)
    return servers


def test_deploying_again_changes_nothing(
    deployed: Deployed,
) -> None:
    said = (deployed.folder / "registered.txt").read_text()
    before = deployed.post("deployments/filter", {}).json()

    done = subprocess.run(
        [deployed.command, "deploy", "--folder", str(deployed.folder),
         "--webhook-url-env", "HOOK"],
        cwd="/", env=deployed.env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout == said, done.stderr
    after = deployed.post("deployments/filter", {}).json()
    assert {one["name"] for one in after} >= {"demo", "nightly", "on-demand"}
    assert sorted(one["id"] for one in after) == sorted(one["id"] for one in before)
    automations = deployed.post("automations/filter", {}).json()
    names = [one["name"] for one in automations]
    assert len(names) == len(set(names)) == 4
    for name in ("demo", "nightly", "collect-shard", *names):
        assert name in said


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "the environment variable HOOK is not set"),
        ("a secret", "the value of HOOK must be an address"),
    ],
)
def test_a_bad_address_is_refused_and_hidden(
    deployed: Deployed, address: str, said: str
) -> None:
    done = subprocess.run(
        [deployed.command, "deploy", "--folder", str(deployed.folder),
         "--webhook-url-env", "HOOK"],
        cwd="/", env={**deployed.env, "HOOK": address}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert said in done.stderr.replace("\n", " ")
    assert "secret" not in done.stderr


def test_the_nightly_run_is_scheduled(deployed: Deployed) -> None:
    nightly = deployed.deployment("nightly")

    (schedule,) = nightly["schedules"]
    assert (schedule["active"], schedule["schedule"]["cron"]) == (True, "0 2 * * *")
    assert nightly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"

    def planned() -> list[dict[str, Any]]:
        wanted = {"deployments": {"id": {"any_": [nightly["id"]]}}}
        runs: list[dict[str, Any]] = deployed.post("flow_runs/filter", wanted).json()
        return runs

    until(lambda: bool(planned()), "a nightly run on the server", seconds=30)
    assert {run["state_name"] for run in planned()} == {"Scheduled"}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"plan": {"num_repeats": "abc"}}, "params.plan.num_repeats"),
        ({"plan": {"num_repeats": -1}}, "params.plan.num_repeats"),
        ({"plan": {"limit": 0}}, "params.plan.limit"),
        ({"collect": {"concurrency": 0}}, "params.collect.concurrency"),
        ({"collect": {"dispatch": "best"}}, "params.collect.dispatch"),
        ({"collect": {"max_failures": "lots"}}, "params.collect.max_failures"),
        ({"profile": {"signal_tolerance": -1}}, "params.profile.signal_tolerance"),
        ({"output": "runs/{day}/r.jsonl"}, "params.output"),
        ({"servers": {}}, "give exactly one of head_url"),
        (
            {"servers": {"demo": True, "head_url": "http://h"}},
            "exactly one of head_url",
        ),
        ({"input": None}, "input is required except with the demo servers"),
        ({"unknown": 1}, "'unknown' was unexpected"),
        ({"servers": {"head_url": "127.0.0.1:11000"}}, "params.servers.head_url"),
        ({"spread": {"runner": "work-pool"}}, "needs num_shards, at least 2"),
        (
            {"spread": {"runner": "dask"}, "collect": {"num_shards": 1}},
            "needs num_shards, at least 2",
        ),
    ],
)
def test_a_bad_value_is_refused_before_a_run(
    deployed: Deployed, wrong: dict[str, Any], field: str
) -> None:
    reply = deployed.ask("on-demand", **wrong)

    assert reply.status_code == 409
    assert field in reply.json()["detail"]


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: no page drawn")
def test_a_browser_draws_the_whole_form(
    deployed: Deployed,
) -> None:
    server = deployed.api.removesuffix("/api")
    known = deployed.deployment("on-demand")

    form = browse(f"{server}/deployments/deployment/{known['id']}/run", "--dump-dom")

    for title in ("Output", "Servers", "Head URL", "Num repeats", "Model API key env"):
        assert title in form
    for words in (
        "Rollouts per task: a number, or a JSON object", "What they are compared with.",
        "Where rollouts run.", "How their rewards are read.",
    ):  # fmt: skip
        assert words in form


def test_an_output_has_one_run_at_a_time(
    deployed: Deployed, workers: Workers, slow_servers: httpx.Client
) -> None:
    workers.one()
    turn(slow_servers, latency_ms=4000)  # none ends before all have had their turn
    given = {
        **on(slow_servers), "output": "runs/{date}/r.jsonl",
        "plan": {"num_repeats": 4}, "collect": {"concurrency": 4},
    }  # fmt: skip
    first = deployed.run("nightly", **given)
    until(lambda: any(deployed.folder.glob("runs/*/r.jsonl")), "the first collects")

    second = deployed.run("nightly", **given)
    third = deployed.run("on-demand", **given)
    skipped = deployed.until(second, "Cancelled", "Completed")
    refused = deployed.until(third, "Failed", "Completed")
    turn(slow_servers, latency_ms=0)
    state = deployed.until(first, "Completed", "Failed")

    assert skipped["message"] == "Deployment concurrency limit reached."
    assert "another run is writing this output: pid " in refused["message"]
    assert state["message"].startswith("96 of 96 rollouts collected; mean reward ")
    (output,) = deployed.folder.glob("runs/*/r.jsonl")
    day = output.parent.name
    assert keys(output).total() == 96
    assert set(keys(output).values()) == {1}
    known = deployed.get(f"flow_runs/{first}")
    assert known["expected_start_time"].startswith(day)
    assert known["name"] == f"4 repeats of tasks into runs/{day}/r.jsonl"


def test_a_cancelled_run_frees_its_servers(
    deployed: Deployed, workers: Workers
) -> None:
    worker = workers.one()
    output = deployed.folder / "cancelled/r.jsonl"
    run = deployed.run(
        "on-demand", servers=DEMO, input=None, plan={"num_repeats": 40},
        output="cancelled/r.jsonl", collect={"concurrency": 8},
    )  # fmt: skip
    collected(output, 40)
    processes = [p for c in children_of(worker.pid) for p in [c, *children_of(c)]]
    assert len(processes) > 1
    began = time.monotonic()

    deployed.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
    until(lambda: not any(map(is_alive, processes)), "all gone", seconds=15)
    state = deployed.until(run, "Cancelled", "Crashed", seconds=15)

    assert state["name"] == "Cancelled"
    assert time.monotonic() - began < 15
    assert state["message"].startswith(f"{keys(output).total()} of 960 rollouts")
    of_run = {"artifacts": {"flow_run_id": {"any_": [run]}}}
    shown = deployed.post("artifacts/filter", of_run).json()
    keys_shown = {artifact["key"].partition("-of-")[0] for artifact in shown}
    assert "reward-profiling-report" in keys_shown
    progress = next(one for one in shown if one["type"] == "progress")
    assert " left" not in progress["description"]
    assert "still owed" in progress["description"]
    said = "ended early: a person cancelled the run"
    logs = deployed.post("logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}})
    assert said in logs.text
    event = "reward-profiling.cancelled"
    heard = {"filter": {"event": {"name": [event]}}}
    until(
        lambda: deployed.post("events/filter", heard).json()["total"] > 0,
        "the event of the cancelled run",
    )


def test_a_suspended_run_can_be_resumed(
    deployed: Deployed, workers: Workers, slow_servers: httpx.Client
) -> None:
    worker = workers.one()
    output = deployed.folder / "suspended/r.jsonl"
    run = deployed.run(
        "on-demand", **on(slow_servers), plan={"num_repeats": 8},
        output="suspended/r.jsonl", collect={"concurrency": 4},
    )  # fmt: skip
    collected(output, 8)
    (process,) = children_of(worker.pid)
    last = datetime.now(UTC) + timedelta(hours=1)
    paused = {"pause_reschedule": True, "pause_timeout": last.isoformat()}
    state = {"type": "PAUSED", "name": "Suspended", "state_details": paused}

    deployed.post(f"flow_runs/{run}/set_state", {"state": state}).raise_for_status()
    until(lambda: not is_alive(process), "its process is gone", seconds=40)
    kept = keys(output)
    stayed = deployed.state(run)["name"]
    turn(slow_servers, latency_ms=0)
    deployed.post(f"flow_runs/{run}/resume", {}).raise_for_status()
    ended = deployed.until(run, "Completed", "Failed", "Partial", "Crashed")

    assert 8 <= kept.total() < 192
    assert stayed == "Suspended"
    assert ended["message"].startswith("192 of 192 rollouts collected")
    assert keys(output) == asked(slow_servers)


def test_operator_faults_have_no_traceback(
    deployed: Deployed, workers: Workers
) -> None:
    workers.one()

    run = deployed.run(
        "on-demand", servers=DEMO, input="not-there.jsonl", output="mend/r.jsonl"
    )
    state = deployed.until(run, "Failed", "Completed", "Crashed")

    assert "not-there.jsonl does not exist" in state["message"]
    wanted = {"logs": {"flow_run_id": {"any_": [run]}}}

    def said() -> str:
        return json.dumps(deployed.post("logs/filter", wanted).json())

    until(lambda: "not-there.jsonl does not exist" in said(), "it is in the log")
    assert "Traceback" not in said()
    broken = {"filter": {"event": {"name": ["reward-profiling.failed"]}}}
    until(
        lambda: "mend/r.jsonl" in deployed.post("events/filter", broken).text,
        "the event of the broken run",
    )


@pytest.fixture
def impatient(deployed: Deployed) -> Iterator[None]:
    """Have a silent run crash sooner than in life: after one heartbeat is missed."""
    with deployed.impatient(40):
        yield


@pytest.mark.usefixtures("impatient")
def test_dead_runs_start_again(
    deployed: Deployed, workers: Workers, slow_servers: httpx.Client
) -> None:
    given = {
        **on(slow_servers), "plan": {"num_repeats": 4}, "collect": {"concurrency": 4}
    }  # fmt: skip
    workers.one()
    silent = deployed.run("on-demand", **given, output="silent/r.jsonl")
    collected(deployed.folder / "silent/r.jsonl", 10)
    workers.kill()
    heir = workers.one()
    killed = deployed.run("on-demand", **given, output="killed/r.jsonl")
    collected(deployed.folder / "killed/r.jsonl", 10)
    (process,) = children_of(heir.pid)
    os.kill(process, signal.SIGKILL)

    for run in (killed, silent):
        state = deployed.until(run, "Completed", "Failed", "Partial", seconds=150)
        assert state["message"].startswith("96 of 96 rollouts collected")
        names = deployed.states(run)
        assert names.count("Running") == 2
        assert names.index("Crashed") < names.index("Restarting")
    open_steps = {
        "flow_runs": {"id": {"any_": [killed, silent]}},
        "task_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}},
    }
    until(
        lambda: deployed.post("task_runs/filter", open_steps).json() == [],
        "no step of a killed process is left running",
    )
    assert sum(asked(slow_servers).values()) <= 2 * (96 + 4)
    for name in ("silent", "killed"):
        assert keys(deployed.folder / name / "r.jsonl").total() == 96


def test_the_webhook_hears_of_a_partial_run(
    deployed: Deployed, workers: Workers, servers: httpx.Client, hook: Hook
) -> None:
    workers.one()
    turn(servers, fail_status=500, fail_match="capital of Australia")

    run = deployed.run(
        "on-demand", **on(servers), plan={"num_repeats": 1}, output="told/r.jsonl",
        collect={"retries": 0},
    )  # fmt: skip
    state = deployed.until(run, "Partial", "Completed", "Failed")
    output = str(deployed.folder / "told/r.jsonl")

    def heard() -> list[dict[str, Any]]:
        return [told for told in hook.heard if told["output"] == output]

    until(lambda: bool(heard()), "the webhook is called", seconds=30)

    assert state["type"] == "FAILED"
    (told,) = heard()
    assert told["event"] == "reward-profiling.partial"
    assert told["content_type"] == "application/json"
    assert told["text"].startswith("reward-profiling.partial: 23 of 24 rollouts coll")
    assert told["payload"]["failed"] == 1
    assert run in told["page"]
    assert len(json.dumps(told)) < 20_000
