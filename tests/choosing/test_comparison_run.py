"""Comparing real outputs: what is paired, what is not, and the command's verdict."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_profiling.choosing.comparing.judgement import finding_of
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.choosing.comparison_run import compare_outputs
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles

Row = dict[str, Any]
Run = Callable[..., subprocess.CompletedProcess[str]]
NUM_TASKS = 40


def output(
    path: Path,
    order: Sequence[int],
    passes: Callable[[int, int], float | None],
    **params: object,
) -> RunFiles:
    """Write a run of the tasks in `order`, numbered as they stand there."""
    files = RunFiles(path)
    plan, records = [], []
    for index, task in enumerate(order):
        for rollout in range(4):
            key = {"_ng_task_index": index, "_ng_rollout_index": rollout}
            row: Row = {
                "responses_create_params": {"input": f"task {task}", **params},
                "agent_ref": {"name": "even" if task % 2 == 0 else "odd"},
                **key,
            }
            plan.append(row)
            reward = passes(task, rollout)
            response: Row = {"output": []}
            records.append({**row, "reward": reward, "response": response})
    path.parent.mkdir(exist_ok=True)
    for target, rows in ((files.materialized_inputs, plan), (path, records)):
        target.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return files


def half(task: int, rollout: int) -> float:
    return float((task + rollout) % 2)


def worse(task: int, rollout: int) -> float:
    return float((task + rollout) % 2 and (rollout > 1 or task % 5 == 0))


def test_tasks_are_paired_in_any_order(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(NUM_TASKS), half)
    after = output(tmp_path / "b.jsonl", range(NUM_TASKS - 1, -1, -1), half)

    found = compare_outputs(before, after, CompareOptions(max_regression=0.2))

    assert (found.overall.num_tasks, found.overall.difference) == (NUM_TASKS, 0.0)
    assert [one.agent for one in found.agents] == ["even", "odd"]
    assert (found.judgement, finding_of(found)) == ("PASS", None)
    assert found.only_baseline == found.only_candidate == ()


def test_unpaired_tasks_are_listed(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(10), half)
    after = output(
        tmp_path / "b.jsonl", range(4, 12),
        lambda task, rollout: None if task == 5 else half(task, rollout),
    )  # fmt: skip

    found = compare_outputs(before, after, CompareOptions())

    assert found.overall.num_tasks == 5
    assert [(u.label, u.reason) for u in found.only_baseline] == [
        ("task 0", "not in the other run"), ("task 1", "not in the other run"),
        ("task 2", "not in the other run"), ("task 3", "not in the other run"),
        ("task 5", "no scored rollout in the other run"),
    ]  # fmt: skip
    assert [(u.task_index, u.label, u.reason) for u in found.only_candidate] == [
        (1, "task 5", "no scored rollout"), (6, "task 10", "not in the other run"),
        (7, "task 11", "not in the other run"),
    ]  # fmt: skip


def test_other_settings_are_told(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(6), half)
    after = output(tmp_path / "b.jsonl", range(6), half, temperature=1.0)

    found = compare_outputs(before, after, CompareOptions())

    assert found.overall.num_tasks == 6
    assert "6 paired tasks ran with other settings" in found.warnings[0]


def annotated(files: RunFiles, **notes: object) -> None:
    """Write notes into the rows of a plan, as a selection does."""
    plan = files.materialized_inputs
    rows = [orjson.loads(line) | notes for line in plan.read_bytes().splitlines()]
    plan.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def test_a_column_of_one_run_is_ignored(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(6), half)
    after = output(tmp_path / "b.jsonl", range(5, 0, -1), half)
    annotated(after, pass_rate=0.5)

    found = compare_outputs(before, after, CompareOptions())

    assert (found.overall.num_tasks, found.overall.difference) == (5, 0.0)
    assert found.warnings == (
        "columns that only one run has were ignored to match tasks: pass_rate",
    )


def test_a_shared_column_tells_tasks_apart(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(6), half)
    after = output(tmp_path / "b.jsonl", range(6), half)
    annotated(before, expected_answer="x")
    annotated(after, expected_answer="y")

    with pytest.raises(ConfigError, match="no scored task in common"):
        compare_outputs(before, after, CompareOptions())


def test_a_comparison_overwrites_nothing_else(tmp_path: Path, command: Run) -> None:
    files = output(tmp_path / "a.jsonl", range(6), half)
    records = files.rollouts.read_bytes()
    both = ("compare", "--baseline", "a.jsonl", "--candidate", "a.jsonl", "--json")

    refused = command(*both, "a.jsonl")
    written = [command(*both, "c.json").returncode for _ in range(2)]

    assert (refused.returncode, written) == (2, [0, 0])
    assert "a.jsonl exists and is not a comparison" in refused.stderr
    assert files.rollouts.read_bytes() == records


def test_unscored_tasks_are_not_unpaired(tmp_path: Path, command: Run) -> None:
    output(tmp_path / "a.jsonl", range(6), half)
    output(tmp_path / "b.jsonl", range(6), lambda task, _: None if task == 5 else 1.0)

    done = command("compare", "--baseline", "a.jsonl", "--candidate", "b.jsonl")

    assert "1 task of the candidate not compared: no scored rollout\n" in done.stdout


def test_plan_order_does_not_change_tasks(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(6), half)
    after = output(tmp_path / "b.jsonl", range(6), half)
    for files, step in ((before, 1), (after, -1)):
        rows = map(orjson.loads, files.materialized_inputs.read_bytes().splitlines())
        lines = []
        for row in rows:
            row["responses_create_params"]["seed"] = row["_ng_rollout_index"]
            lines.append(orjson.dumps(row) + b"\n")
        files.materialized_inputs.write_bytes(b"".join(lines[::step]))

    found = compare_outputs(before, after, CompareOptions())

    assert (found.overall.num_tasks, found.warnings) == (6, ())


def test_a_regression_is_critical(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(NUM_TASKS), half)
    after = output(tmp_path / "b.jsonl", range(NUM_TASKS), worse)

    found = compare_outputs(before, after, CompareOptions(max_regression=0.05))

    finding = finding_of(found)
    assert finding is not None
    assert (finding.name, finding.severity) == ("regressed", "critical")
    assert "n=40 paired tasks" in finding.sentence
    assert found.judgement == "REGRESSED"


def test_other_tasks_are_not_compared(tmp_path: Path) -> None:
    before = output(tmp_path / "a.jsonl", range(3), half)
    after = output(tmp_path / "b.jsonl", range(3, 6), half)

    with pytest.raises(ConfigError, match="no scored task in common"):
        compare_outputs(before, after, CompareOptions())


@pytest.mark.parametrize(
    ("passes", "margin", "expected"),
    [(half, "0.2", (0, "PASS")), (worse, "0.05", (5, "REGRESSED")),
     (half, "0.01", (6, "INCONCLUSIVE"))],
)  # fmt: skip
def test_the_exit_code_is_the_verdict(
    passes: Callable[[int, int], float],
    margin: str,
    expected: tuple[int, str],
    tmp_path: Path,
    command: Run,
) -> None:
    output(tmp_path / "a.jsonl", range(NUM_TASKS), half)
    output(tmp_path / "b.jsonl", range(NUM_TASKS), passes)

    done = command(
        "compare", "--baseline", "a.jsonl", "--candidate", "b.jsonl",
        "--max-regression", margin, "--json", "c.json",
    )  # fmt: skip

    code, verdict = expected
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(f"{verdict} ")
    written = orjson.loads((tmp_path / "c.json").read_bytes())
    assert (written["judgement"], written["overall"]["num_tasks"]) == (verdict, 40)
    assert max(map(len, done.stdout.splitlines())) <= 80
