"""What a night's run says of the rewards: worse than its baseline, suspect, partial."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from flows.parameters import EMBEDDED_TASKS
from tests.dag.living import BROWSER, Deployed, Hook, Workers, browse

Run = Callable[..., subprocess.CompletedProcess[str]]
Found = Callable[..., list[dict[str, Any]]]

BASELINE = "runs/baseline/rollouts.jsonl"
# The answers of the scripted policy take 178 tokens at the median: most are cut off.
CUT = {"max_output_tokens": 120}
CONSTANT = {"constant_match": "exact_match_agent", "constant_reward": 1.0}
SUSPECT = "exact_match_agent: all 32 rewards of 8 tasks are 1"


def until(holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.1)


@contextmanager
def policy_of(seed: int) -> Iterator[dict[str, str]]:
    """Serve the environment with draws of its policy that are another seed's."""
    line = [sys.executable, "-m", "tasks.demo", "--watch-stdin", "--latency-scale", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*line, "--seed", str(seed)], stdin=pipe, stdout=pipe
    ) as child:
        assert child.stdout is not None
        yield {"head_url": json.loads(child.stdout.readline())["url"]}
        child.communicate(timeout=10)


def events_of(deployed: Deployed, output: Path) -> list[dict[str, Any]]:
    """Return the events of ours about an output, the earliest first."""
    about = {
        "event": {"prefix": ["reward-profiling."]},
        "resource": {"id": [f"reward-profiling.output.{quote(str(output))}"]},
        "order": "ASC",
    }
    reply = deployed.post("events/filter", {"filter": about, "limit": 50})
    events: list[dict[str, Any]] = reply.raise_for_status().json()["events"]
    return events


def names_of(deployed: Deployed, output: Path) -> list[str]:
    return sorted(event["event"] for event in events_of(deployed, output))


def report_of(found: Found, run: str) -> dict[str, Any]:
    of_run = {"flow_run_id": {"any_": [run]}, "type": {"any_": ["markdown"]}}
    (report,) = found("artifacts", {"artifacts": of_run})
    return report


def nightly(deployed: Deployed, output: str, **given: Any) -> str:  # noqa: ANN401
    return deployed.run(
        "nightly", input=str(EMBEDDED_TASKS), output=output,
        plan={"num_repeats": 8, **given.pop("plan", {})}, **given,
    )  # fmt: skip


def test_a_worse_policy_is_told_to_the_webhook_and_an_equal_one_is_not(
    deployed: Deployed, workers: Workers, hook: Hook, found: Found
) -> None:
    workers.one()
    comparison = deployed.deployment("nightly")["parameters"]["params"]["comparison"]
    assert comparison == {"baseline": BASELINE, "max_regression": 0.05}

    def ended(run: str) -> dict[str, Any]:
        return deployed.until(run, "Completed", "Failed", "Partial")

    with policy_of(seed=0) as first, policy_of(seed=1) as other:
        ended(nightly(deployed, BASELINE, servers=first, comparison={}))
        equal = ended(nightly(deployed, "runs/equal/rollouts.jsonl", servers=other))
        worse = nightly(
            deployed, "runs/worse/rollouts.jsonl", servers=first,
            plan={"responses_create_params": CUT},
        )  # fmt: skip
        state = ended(worse)
    output = deployed.folder / "runs/worse/rollouts.jsonl"
    until(lambda: bool(told_of(hook, output)), "the webhook hears of the worse run")

    assert (state["name"], state["type"]) == ("Completed", "COMPLETED")
    said = "needs attention: reward 0.526 before and 0.208 now: -0.318, 95 % interval"
    assert said in state["message"]
    assert "n=24 paired tasks; at most 0.05 worse is allowed" in state["message"]
    expected = ["reward-profiling.completed", "reward-profiling.regressed"]
    assert names_of(deployed, output) == expected

    (told,) = told_of(hook, output)
    assert told["text"].startswith("reward-profiling.regressed: 192 of 192 rollouts")
    payload = told["payload"]
    assert {payload[name] for name in ("planned", "collected", "scored")} == {192}
    assert (payload["num_scored_tasks"], payload["failed"]) == (24, 0)
    regressed = payload["findings"][0]
    assert (regressed["name"], regressed["severity"]) == ("regressed", "critical")
    evidence = regressed["evidence"]
    assert (evidence["tasks"], evidence["max_regression"]) == (24, 0.05)
    assert evidence["difference"] == pytest.approx(-0.3177, abs=1e-4)
    assert evidence["low"] < evidence["difference"] < evidence["high"] < -0.05
    assert len(json.dumps(told)) < 20_000

    report = str(report_of(found, worse)["data"])
    assert report.split("\n\n")[1].startswith("- **critical** reward 0.526 before and")
    assert "- `rollouts_comparison.json`" in report
    kept = json.loads(output.with_name("rollouts_comparison.json").read_bytes())
    assert kept["judgement"] == "REGRESSED"
    assert kept["overall"]["difference"] == evidence["difference"]

    same = deployed.folder / "runs/equal/rollouts.jsonl"
    kept = json.loads(same.with_name("rollouts_comparison.json").read_bytes())
    assert equal["type"] == "COMPLETED"
    assert kept["overall"]["difference"] != 0  # other draws, not the same ones again
    assert kept["judgement"] != "REGRESSED"
    assert names_of(deployed, same) == ["reward-profiling.completed"]
    assert told_of(hook, same) == []


def told_of(hook: Hook, output: Path) -> list[dict[str, Any]]:
    return [told for told in hook.heard if told["output"] == str(output)]


def test_the_command_line_shows_a_regression_and_strictness_makes_it_exit_4(
    deployed: Deployed, command: Run, tmp_path: Path
) -> None:
    line = ("run", "--input", EMBEDDED_TASKS, "--num-repeats", "4", "--output")
    against = ("--baseline", "a.jsonl", "--max-regression", "0.05")
    cut = ("--responses-create-params", json.dumps(CUT))
    api = {"PREFECT_API_URL": deployed.api}
    with policy_of(seed=0) as servers:
        at = ("--head-url", servers["head_url"])
        first = command(*line, "a.jsonl", *at, **api)
        shown = command(*line, "b.jsonl", *at, *against, *cut, **api)
        strict = command(
            *line, "b.jsonl", *at, *against, *cut, "--strict", "critical", **api
        )

    codes = (first.returncode, shown.returncode, strict.returncode)
    assert codes == (0, 0, 4), strict.stderr
    sentence = "reward 0.531 before and 0.219 now: -0.312, 95 % interval"
    for done in (shown, strict):
        assert f" critical      {sentence}" in done.stdout
        assert "look at the tasks that flipped" in done.stdout
        assert done.stdout.rstrip().endswith("b_comparison.json")
    assert f"error: --strict critical: {sentence}" in strict.stderr
    assert "--strict" not in shown.stderr
    assert (tmp_path / "b.jsonl").read_bytes().count(b"\n") == 96


def test_a_constant_verifier_is_told_and_with_strict_the_command_exits_4(
    deployed: Deployed, command: Run, servers: httpx.Client, hook: Hook,
    found: Found, tmp_path: Path,
) -> None:  # fmt: skip
    servers.post("/_knobs", json=CONSTANT).raise_for_status()
    line = ("run", "--input", EMBEDDED_TASKS, "--output", tmp_path / "r.jsonl",
            "--num-repeats", "4", "--head-url", str(servers.base_url))  # fmt: skip

    plain = command(*line, PREFECT_API_URL=deployed.api)
    strict = command(*line, "--strict", "critical", PREFECT_API_URL=deployed.api)
    output = tmp_path / "r.jsonl"
    until(lambda: len(told_of(hook, output)) > 1, "the webhook hears of both runs")

    assert (plain.returncode, strict.returncode) == (0, 4), strict.stderr
    assert strict.stderr.splitlines()[-1] == f"error: --strict critical: {SUSPECT}"
    assert "error" not in plain.stderr
    name = f"4 repeats of tasks into {output}"
    runs = found("flow_runs", {"flow_runs": {"name": {"any_": [name]}}})
    states = {run["state_name"]: run["state"] for run in runs}
    assert {name: state["type"] for name, state in states.items()} == {
        "Completed": "COMPLETED", "Failed": "FAILED",
    }  # fmt: skip
    for state in states.values():
        assert state["message"].startswith("96 of 96 rollouts collected; mean reward ")
        assert state["message"].endswith(f"; needs attention: {SUSPECT}")
    expected = ["reward-profiling.completed", "reward-profiling.verifier-suspect"]
    assert names_of(deployed, output) == sorted(2 * expected)
    told = told_of(hook, output)[0]
    assert told["event"] == "reward-profiling.verifier-suspect"
    assert SUSPECT in told["text"]
    requests = servers.get("/_knobs").json()["requests"]
    assert requests == 96  # the second run asked for nothing again


def test_strictness_is_a_parameter_of_a_deployment_too(
    deployed: Deployed, workers: Workers, servers: httpx.Client
) -> None:
    workers.one()
    servers.post("/_knobs", json=CONSTANT).raise_for_status()

    run = deployed.run(
        "on-demand", input=str(EMBEDDED_TASKS), plan={"num_repeats": 4},
        servers={"head_url": str(servers.base_url)}, output="strict/r.jsonl",
        profile={"strict": "critical"},
    )  # fmt: skip
    state = deployed.until(run, "Failed", "Completed", "Partial")

    assert (state["name"], state["type"]) == ("Failed", "FAILED")
    assert state["message"].endswith(f"; needs attention: {SUSPECT}")


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: no page drawn")
def test_a_person_sees_that_a_run_is_partial_and_what_is_missing(
    deployed: Deployed, command: Run, servers: httpx.Client, found: Found,
    tmp_path: Path,
) -> None:  # fmt: skip
    knobs = {"fail_status": 500, "fail_match": "capital of Australia"}
    servers.post("/_knobs", json=knobs).raise_for_status()
    server = deployed.api.removesuffix("/api")

    done = command(
        "run", "--input", EMBEDDED_TASKS, "--output", tmp_path / "r.jsonl",
        "--num-repeats", "2", "--retries", "0", "--head-url", str(servers.base_url),
        PREFECT_API_URL=deployed.api,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    (seen,) = [line for line in done.stderr.splitlines() if "seen at " in line]
    run = seen.rpartition("/")[2]
    report = report_of(found, run)
    browse(f"{server}/runs/flow-run/{run}", f"--screenshot={tmp_path / 'run.png'}")
    page = browse(f"{server}/runs/flow-run/{run}", "--dump-dom")
    text = browse(f"{server}/artifacts/artifact/{report['id']}", "--dump-dom")

    assert (tmp_path / "run.png").stat().st_size > 30_000  # an empty page takes a few
    assert "Partial" in page
    assert "Failed" not in page.partition("Logs")[0]
    assert "46 of 48 rollouts collected: 2 failed (2 agent_run_error)" in page
    for words in ("46 of 48 rollouts collected: 2 failed", "Failed rollouts</h2>",
                  "2 rollouts failed; every attempt is a line of", "agent_run_error"):  # fmt: skip
        assert words in text
