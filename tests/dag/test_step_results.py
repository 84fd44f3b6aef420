"""A step's result stands in for the step only while the files agree."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.collecting.aggregation.aggregate_summary import AggregateSummary
from reward_profiling.files.file_stamps import file_stamp
from reward_profiling.planning.plan_summary import PlanSummary
from reward_profiling.servers.options import EMBEDDED_TASKS
from reward_profiling.tasks.shared.step_results import FilesAgree, StaleResultError
from tests.observing import until

Run = Callable[..., subprocess.CompletedProcess[str]]
Found = Callable[..., list[dict[str, object]]]
Profile = Callable[..., dict[str, str]]

LAST_STEP = "publish_profile"


@pytest.fixture
def plan(tmp_path: Path) -> PlanSummary:
    """Give a plan and its manifest on disk."""
    paths = tmp_path / "r_materialized_inputs.jsonl", tmp_path / "r_run.json"
    for path in paths:
        path.write_bytes(b'{"a": 1}\n')
    written, manifest = map(str, paths)
    return PlanSummary(
        path=written, num_tasks=1, num_rollouts=1, num_new=1, manifest=manifest
    )


def test_a_result_holds_while_its_files_do(
    plan: PlanSummary,
) -> None:
    kept = FilesAgree().dumps(plan)
    os.utime(plan.path)  # touched, not changed

    assert FilesAgree().loads(kept) == plan


@pytest.mark.parametrize("what", ["deleted", "edited", "grown"])
def test_a_changed_file_voids_its_result(plan: PlanSummary, what: str) -> None:
    kept = FilesAgree().dumps(plan)
    path = Path(plan.path)
    if what == "deleted":
        path.unlink()
    else:
        path.write_bytes(b'{"a": 2}\n' if what == "edited" else b'{"a": 1}\n{}\n')

    with pytest.raises(StaleResultError):
        FilesAgree().loads(kept)


def test_unanswered_metrics_are_asked_again() -> None:
    summary = AggregateSummary(path=None, num_servers=0, warnings=("it was away",))

    with pytest.raises(StaleResultError):
        FilesAgree().loads(FilesAgree().dumps(summary))


def test_large_files_are_compared_by_samples(
    tmp_path: Path,
) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(9_000_000))
    stamps = [file_stamp(path)]
    moment = path.stat().st_mtime_ns
    for offset in (0, 8_999_999):
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(b"x")
        os.utime(path, ns=(moment, moment))
        stamps.append(file_stamp(path))
    os.utime(path, ns=(moment, moment + 1))
    stamps.append(file_stamp(path))

    assert len(set(stamps)) == 4
    assert file_stamp(path) == stamps[-1]
    assert file_stamp(tmp_path / "none") is None


@pytest.fixture
def profile(command: Run, servers: httpx.Client, api_url: str, found: Found) -> Profile:
    """Give a way to run the same profile, and to see the states of its steps."""
    seen: set[object] = set()

    def run(*options: str, **env: str) -> dict[str, str]:
        line = ["run", "--input", str(EMBEDDED_TASKS), "--output", "r.jsonl"]
        done = command(
            *line, "--head-url", str(servers.base_url), *options,
            PREFECT_API_URL=api_url, **env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said = next(
            line for line in done.stderr.splitlines() if "page of this run" in line
        )
        wanted = {"flow_runs": {"id": {"any_": [said.rpartition("/")[2]]}}}
        runs: list[dict[str, object]] = []

        def ended() -> bool:  # the server learns of the ends of steps a little later
            runs[:] = [
                one for one in found("task_runs", wanted) if one["id"] not in seen
            ]
            keys = {str(one["task_key"]).rpartition("-")[0] for one in runs}
            names = {one["state_name"] for one in runs}
            return LAST_STEP in keys and not {"Running", "Pending"} & names

        until(ended, "the ends of all steps")
        seen.update(one["id"] for one in runs)
        return {
            str(one["task_key"]).rpartition("-")[0]: str(one["state_name"])
            for one in runs
        }

    return run


def cached(states: dict[str, str]) -> set[str]:
    return {step for step, state in states.items() if state == "Cached"}


def test_every_step_but_collecting_is_cached(
    profile: Profile, servers: httpx.Client, tmp_path: Path
) -> None:
    persist = {"PREFECT_TASKS_DEFAULT_PERSIST_RESULT": "true"}

    assert cached(profile(**persist)) == set()
    assert cached(profile(**persist)) == {"profile_rewards", "derive_insights"}
    (tmp_path / "r_reward_profiling.jsonl").unlink()
    (tmp_path / "r_aggregate_metrics.json").unlink()
    again = profile(**persist)
    refreshed = profile(**persist, PREFECT_TASKS_REFRESH_CACHE="true")

    assert "materialize_inputs" in cached(again)
    for step in ("collect_shard", "aggregate_metrics", "profile_rewards"):
        assert again[step] == "Completed"
    assert cached(refreshed) == set()
    assert (tmp_path / "r_reward_profiling.jsonl").read_bytes().count(b"\n") == 24
    metrics = json.loads((tmp_path / "r_aggregate_metrics.json").read_bytes())
    assert metrics
    assert sum(servers.get("/_knobs").json()["by_key"].values()) == 24
