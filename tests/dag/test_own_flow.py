"""The flow and its steps in a flow of the user's own: `docs/own_flow.py`."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.observing import keys, planned, until

SCRIPT = Path(__file__).parents[2] / "docs" / "own_flow.py"
Found = Callable[..., list[dict[str, object]]]


def test_a_flow_of_ones_own_uses_flow_and_steps(
    command_env: dict[str, str], api_url: str, found: Found, tmp_path: Path
) -> None:
    output = tmp_path / "own" / "r.jsonl"
    done = subprocess.run(
        [sys.executable, SCRIPT, output],
        cwd=tmp_path, env={**command_env, "PREFECT_API_URL": api_url},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert 0 <= float(done.stdout.splitlines()[-1]) <= 1
    assert keys(output) == planned(output)
    (run,) = found("flow_runs", {"flows": {"name": {"any_": ["gate"]}}})
    assert run["state_name"] == "Completed"


def test_the_flow_is_served_without_a_worker(
    command_env: dict[str, str], api_url: str, found: Found, tmp_path: Path
) -> None:
    output = tmp_path / "served" / "r.jsonl"
    env = {**command_env, "PREFECT_API_URL": api_url}
    with subprocess.Popen(
        [sys.executable, SCRIPT, output, "serve"], cwd=tmp_path, env=env
    ) as serving:
        named = {"deployments": {"name": {"any_": ["own"]}}}
        until(lambda: bool(found("deployments", named)), "the deployment")
        ask = ("-m", "prefect", "deployment", "run", "reward-profiling/own")
        subprocess.run(
            [sys.executable, *ask],
            env=env, check=True, capture_output=True,
        )  # fmt: skip

        def states() -> set[object]:
            return {run["state_name"] for run in found("flow_runs", named)}

        until(lambda: states() == {"Completed"}, "the served run")
        serving.send_signal(signal.SIGTERM)

    assert keys(output) == planned(output)
