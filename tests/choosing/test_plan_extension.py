"""Growing real plans, and a collection that does it by itself."""

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions, AdaptiveSummary
from reward_profiling.choosing.plan_extension import grow_plan, wants_more
from reward_profiling.errors import PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import (
    is_planned,
    materialize,
    refuse_change,
)
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.options import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]


def planned(folder: Path, **options: object) -> tuple[RunFiles, Path, PlanOptions]:
    source = folder / "tasks.jsonl"
    rows = [
        {"responses_create_params": {"input": f"task {index}"},
         "agent_ref": {"name": "a"}}
        for index in range(3)
    ]  # fmt: skip
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    files = RunFiles(folder / "r.jsonl")
    chosen = PlanOptions.made({"num_repeats": 2, **options})
    materialize(check_input(source, chosen), files)
    return files, source, chosen


def plan_of(files: RunFiles) -> list[bytes]:
    return files.materialized_inputs.read_bytes().splitlines()


def key(line: bytes) -> tuple[int, int]:
    row = orjson.loads(line)
    return row["_ng_task_index"], row["_ng_rollout_index"]


def collect(files: RunFiles, reward: Callable[[int, int], float]) -> None:
    rows = [orjson.loads(line) for line in plan_of(files)]
    records = [
        {**row, "reward": reward(row["_ng_task_index"], row["_ng_rollout_index"]),
         "response": {"output": []}}
        for row in rows
    ]  # fmt: skip
    files.rollouts.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))


def grow(files: RunFiles, **options: object) -> AdaptiveSummary:
    chosen = AdaptiveOptions.made({"adaptive": True, **options})
    return grow_plan(files, chosen, ProfileOptions())


def mixed_first(task: int, rollout: int) -> float:
    """Return passes and misses for task 0, and one kind for the others."""
    return float(rollout % 2) if task == 0 else float(task == 1)


@pytest.mark.parametrize("options", [{}, {"num_repeats_add_seed": True}])
def test_new_lines_equal_a_larger_plans(
    options: dict[str, Any], tmp_path: Path
) -> None:
    files, source, _ = planned(tmp_path, **options)
    before = plan_of(files)
    collect(files, mixed_first)

    summary = grow(files)

    added = plan_of(files)[len(before) :]
    assert plan_of(files)[: len(before)] == before
    assert [key(line) for line in added] == [(1, 2), (2, 2)]
    assert (summary.num_new, summary.planned, summary.uniform) == (2, 8, 9)
    other = RunFiles(tmp_path / "other" / "r.jsonl")
    more = PlanOptions.made({"num_repeats": 3, **options})
    materialize(check_input(source, more), other)
    assert set(added) <= set(plan_of(other))


def test_a_second_run_keeps_what_was_added(tmp_path: Path) -> None:
    files, source, options = planned(tmp_path)
    collect(files, mixed_first)
    grow(files)
    grown = plan_of(files)

    checked = check_input(source, options)
    refuse_change(checked, files)
    assert is_planned(checked, files)
    summary = materialize(checked, files)

    assert sorted(plan_of(files)) == sorted(grown)
    assert (summary.num_new, summary.num_rollouts) == (0, 8)
    assert orjson.loads(files.run.read_bytes())["adaptive"] is True
    again = materialize(check_input(source, PlanOptions(num_repeats=4)), files)
    assert again.num_rollouts == 12
    assert Counter(key(line) for line in plan_of(files)).most_common(1)[0][1] == 1


def test_an_adaptive_plan_keeps_its_settings(tmp_path: Path) -> None:
    files, source, _ = planned(tmp_path)
    collect(files, mixed_first)
    grow(files)
    hot = PlanOptions(num_repeats=2, responses_create_params={"temperature": 1.0})

    with pytest.raises(PlanChangedError, match="temperature"):
        refuse_change(check_input(source, hot), files)


def test_nothing_open_touches_nothing(tmp_path: Path) -> None:
    files, _, _ = planned(tmp_path)
    adaptive, reading = AdaptiveOptions(adaptive=True), ProfileOptions()
    assert not wants_more(files, adaptive, reading)
    collect(files, mixed_first)
    assert wants_more(files, adaptive, reading)
    assert not wants_more(files, AdaptiveOptions(), reading)
    collect(files, lambda _, rollout: float(rollout % 2))
    assert not wants_more(files, adaptive, reading)
    before = files.materialized_inputs.read_bytes(), files.run.read_bytes()

    summary = grow(files)

    assert (summary.num_new, summary.num_settled) == (0, 3)
    assert (files.materialized_inputs.read_bytes(), files.run.read_bytes()) == before


def test_a_folder_of_gyms_grows_too(tmp_path: Path) -> None:
    files, _, _ = planned(tmp_path)
    files.run.unlink()
    collect(files, mixed_first)

    grow(files)

    assert len(plan_of(files)) == 8
    assert not files.run.exists()


def test_agents_of_one_task_have_own_indices(tmp_path: Path) -> None:
    files, _, _ = planned(tmp_path, fan_out={"a": ["x", "y"]})
    collect(files, lambda _, __: 1.0)

    grow(files)

    keys = [key(line) for line in plan_of(files)]
    assert len(keys) == len(set(keys)) == 18
    agents = [orjson.loads(line)["agent_ref"]["name"] for line in plan_of(files)]
    assert Counter(agents) == {"x": 9, "y": 9}


def test_open_tasks_are_collected_further(
    tmp_path: Path, servers: httpx.Client, command: Run
) -> None:
    plan = ("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl")
    command(*plan, "--num-repeats", "4")
    adaptive = ("--adaptive", "--max-repeats", "12", "--max-rollouts", "150")
    arguments = ("collect", "--output", "r.jsonl", "--head-url", str(servers.base_url))

    done = command(*arguments, *adaptive)
    again = command(*arguments, *adaptive)

    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    files = RunFiles(tmp_path / "r.jsonl")
    records = [orjson.loads(r) for r in files.rollouts.read_bytes().splitlines()]
    repeats = Counter(record["_ng_task_index"] for record in records)
    assert len(records) == len(plan_of(files)) <= 150
    assert set(repeats) == set(range(24))
    assert min(repeats.values()) == 4
    assert max(repeats.values()) > 4
    assert "equal repeats would take" in done.stderr
    assert "nothing to do" in again.stderr
    refused = command(*arguments, "--adaptive", "--shard", "0/2")
    assert refused.returncode == 2
