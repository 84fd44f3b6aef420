"""What a night's run says of the rewards: worse than its baseline, suspect, partial."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import BROWSER, Deployed, Hook, Workers, browse
from tests.observing import until

Run = Callable[..., subprocess.CompletedProcess[str]]

BASELINE = "runs/baseline/rollouts.jsonl"
WORSE = "runs/worse/rollouts.jsonl"
SENTENCE = "reward 0.526 before and 0.208 now: -0.318, 95 % interval"
# The answers of the scripted policy take 178 tokens at the median: most are cut off.
CUT = {"max_output_tokens": 120}
CONSTANT = {"constant_match": "exact_match_agent", "constant_reward": 1.0}
SUSPECT = "exact_match_agent: all 32 rewards of 8 tasks are 1"


@contextmanager
def policy_of(seed: int) -> Iterator[str]:
    """Serve the environment; the same policy draws other answers by another seed."""
    line = [
        sys.executable,
        "-m",
        "reward_profiling.demo",
        "--watch-stdin",
        "--latency-scale",
        "0",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*line, "--seed", str(seed)], stdin=pipe, stdout=pipe
    ) as child:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())["url"]
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


def announced(deployed: Deployed, output: Path, *names: str) -> None:
    """Wait until the server knows these events of an output, and no other of ours."""
    expected = sorted(f"reward-profiling.{name}" for name in names)

    def known() -> list[str]:
        return sorted(event["event"] for event in events_of(deployed, output))

    until(lambda: len(known()) >= len(expected), f"{expected} of {output}", 30.0)
    assert known() == expected


def told_of(hook: Hook, output: Path) -> list[dict[str, Any]]:
    return [told for told in hook.heard if told["output"] == str(output)]


def report_of(deployed: Deployed, run: str) -> dict[str, Any]:
    of_run = {"flow_run_id": {"any_": [run]}, "type": {"any_": ["markdown"]}}
    (report,) = deployed.post("artifacts/filter", {"artifacts": of_run}).json()
    found: dict[str, Any] = report
    return found


class Night(NamedTuple):
    """A run of the nightly deployment that ended."""

    run: str
    state: dict[str, Any]
    output: Path

    @property
    def comparison(self) -> dict[str, Any]:
        path = self.output.with_name("rollouts_comparison.json")
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found


def night(deployed: Deployed, output: str, url: str, **plan: object) -> Night:
    run = deployed.run(
        "nightly", servers={"head_url": url}, input=str(EMBEDDED_TASKS),
        output=output, plan={"num_repeats": 8, **plan},
    )  # fmt: skip
    state = deployed.until(run, "Completed", "Failed", "Partial")
    return Night(run, state, deployed.folder / output)


@pytest.fixture(scope="module")
def nights(deployed: Deployed, workers: Workers) -> tuple[Night, Night]:
    """Give a night of the baseline's own policy, and then one of a worse policy."""
    workers.one()
    with policy_of(seed=0) as url, policy_of(seed=1) as other:
        line = ("run", "--input", EMBEDDED_TASKS, "--num-repeats", "8",
                "--output", BASELINE, "--head-url", url)  # fmt: skip
        subprocess.run(
            [deployed.command, *line], cwd=deployed.folder, env=deployed.env,
            capture_output=True, check=True,
        )  # fmt: skip
        equal = night(deployed, "runs/equal/rollouts.jsonl", other)
        worse = night(deployed, WORSE, url, responses_create_params=CUT)
    return equal, worse


def test_a_worse_night_reaches_the_webhook(
    deployed: Deployed, nights: tuple[Night, Night], hook: Hook
) -> None:
    _, worse = nights
    until(lambda: bool(told_of(hook, worse.output)), "the webhook hears of it", 30.0)

    (told,) = told_of(hook, worse.output)
    assert told["text"].startswith("reward-profiling.regressed: 192 of 192 rollouts")
    assert told["page"].endswith(worse.run)
    payload = told["payload"]
    assert {payload[name] for name in ("planned", "collected", "scored")} == {192}
    assert (payload["num_scored_tasks"], payload["failed"]) == (24, 0)
    regressed = payload["findings"][0]
    assert (regressed["name"], regressed["severity"]) == ("regressed", "critical")
    evidence = regressed["evidence"]
    assert (evidence["tasks"], evidence["max_regression"]) == (24, 0.05)
    assert evidence["difference"] == worse.comparison["overall"]["difference"]
    assert evidence["low"] < evidence["difference"] < evidence["high"] < -0.05
    assert len(json.dumps(told)) < 20_000
    announced(deployed, worse.output, "completed", "regressed")


def test_the_comparison_is_first_on_the_page(
    deployed: Deployed, nights: tuple[Night, Night]
) -> None:
    _, worse = nights
    report = str(report_of(deployed, worse.run)["data"])
    settings = deployed.deployment("nightly")["parameters"]["params"]["comparison"]

    assert settings == {"baseline": BASELINE, "max_regression": 0.05}
    assert (worse.state["name"], worse.state["type"]) == ("Failed", "FAILED")
    assert f"needs attention: {SENTENCE}" in worse.state["message"]
    assert "n=24 paired tasks; at most 0.05 worse is allowed" in worse.state["message"]
    assert report.split("\n\n")[1].startswith(f"- **critical** {SENTENCE}")
    assert "- `rollouts_comparison.json`" in report
    assert worse.comparison["judgement"] == "REGRESSED"


def test_an_equal_policy_is_no_regression(
    deployed: Deployed, nights: tuple[Night, Night], hook: Hook
) -> None:
    equal, worse = nights
    until(lambda: bool(told_of(hook, worse.output)), "what came later is told", 30.0)
    announced(deployed, worse.output, "completed", "regressed")

    assert equal.state["type"] == "COMPLETED"
    assert equal.comparison["overall"]["difference"] != 0
    assert equal.comparison["judgement"] != "REGRESSED"
    announced(deployed, equal.output, "completed")
    assert told_of(hook, equal.output) == []


def test_a_strict_regression_exits_with_4(
    deployed: Deployed, nights: tuple[Night, Night], command: Run
) -> None:
    _, worse = nights
    records = worse.output.read_bytes()

    done = command(
        "run", "--input", EMBEDDED_TASKS, "--output", WORSE, "--num-repeats", "8",
        "--responses-create-params", json.dumps(CUT), "--head-url", "http://127.0.0.1:9",
        "--baseline", BASELINE, "--max-regression", "0.05", "--strict", "critical",
        cwd=deployed.folder, PREFECT_API_URL=deployed.api, COLUMNS="100",
    )  # fmt: skip

    assert done.returncode == 4, done.stderr
    assert "nothing to do" in done.stderr  # its servers are gone, and not asked
    assert f" critical      {SENTENCE}" in done.stdout
    assert "look at the flipped tasks" in done.stdout
    assert f"error: --strict critical: {SENTENCE}" in done.stderr.replace("\n", " ")
    assert worse.output.read_bytes() == records


def test_a_constant_verifier_exits_with_4(
    deployed: Deployed, command: Run, servers: httpx.Client, hook: Hook, tmp_path: Path
) -> None:
    servers.post("/_knobs", json=CONSTANT).raise_for_status()
    line = ("run", "--input", EMBEDDED_TASKS, "--output", tmp_path / "r.jsonl",
            "--num-repeats", "4", "--head-url", str(servers.base_url))  # fmt: skip

    plain = command(*line, PREFECT_API_URL=deployed.api)
    strict = command(*line, "--strict", "critical", PREFECT_API_URL=deployed.api)
    output = tmp_path / "r.jsonl"
    until(lambda: len(told_of(hook, output)) > 1, "the webhook hears of both", 30.0)

    assert (plain.returncode, strict.returncode) == (0, 4), strict.stderr
    assert strict.stderr.splitlines()[-1] == f"error: --strict critical: {SUSPECT}"
    assert "error" not in plain.stderr
    name = f"4 repeats of tasks into {output}"
    named = {"flow_runs": {"name": {"any_": [name]}}}
    runs = deployed.post("flow_runs/filter", named).json()
    states = {run["state_name"]: run["state"] for run in runs}
    assert {name: state["type"] for name, state in states.items()} == {
        "Completed": "COMPLETED", "Failed": "FAILED",
    }  # fmt: skip
    for state in states.values():
        assert state["message"].startswith("96 of 96 rollouts collected; mean reward ")
        assert state["message"].endswith(f"; needs attention: {SUSPECT}")
    announced(deployed, output, *2 * ("completed", "verifier-suspect"))
    told = told_of(hook, output)[0]
    assert told["event"] == "reward-profiling.verifier-suspect"
    assert SUSPECT in told["text"]
    requests = servers.get("/_knobs").json()["requests"]
    assert requests == 96  # the second run asked for nothing again


def test_a_deployment_can_be_strict_too(
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
def test_a_partial_run_says_what_is_missing(
    deployed: Deployed, command: Run, servers: httpx.Client, tmp_path: Path
) -> None:
    knobs = {"fail_status": 500, "fail_match": "capital of Australia"}
    servers.post("/_knobs", json=knobs).raise_for_status()
    server = deployed.api.removesuffix("/api")

    done = command(
        "run", "--input", EMBEDDED_TASKS, "--output", tmp_path / "r.jsonl",
        "--num-repeats", "2", "--retries", "0", "--head-url", str(servers.base_url),
        PREFECT_API_URL=deployed.api,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    (seen,) = [line for line in done.stderr.splitlines() if "page of this run" in line]
    run = seen.rpartition("/")[2]
    report = report_of(deployed, run)
    page = browse(f"{server}/runs/flow-run/{run}", "--dump-dom")
    text = browse(f"{server}/artifacts/artifact/{report['id']}", "--dump-dom")

    assert "Partial" in page
    assert "Failed" not in page.partition("Logs")[0]
    assert "46 of 48 rollouts collected: 2 failed (2 agent_run_error)" in page
    for words in (
        "46 of 48 rollouts collected: 2 failed", "Failed rollouts</h2>",
        "2 rollouts failed; every attempt is a line of", "agent_run_error",
    ):  # fmt: skip
        assert words in text
