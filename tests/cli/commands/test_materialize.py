"""`materialize`: what is planned, what is refused, and what is left as it was."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.cli.outputs import digests

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))
BAD_ROWS = (
    '{"responses_create_params": {"input": "fine"}, "agent_ref": {"name": "a"}}',
    "{",
    "",
    '["no object"]',
    '{"question": "?"}',
    '{"responses_create_params": {"input": "?"}, "agent_ref": "text"}',
    '{"responses_create_params": {"input": "?"}, "agent_ref": {"name": "a"}, "x": NaN}',
)


@pytest.mark.parametrize("arguments", [["materialize"], ["run", "--demo"]])
def test_all_bad_rows_are_named_first(
    command: Run, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text("\n".join(BAD_ROWS))

    done = command(*arguments, "--input", "bad.jsonl", "--output", "r.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    heading, *faults = done.stderr.splitlines()
    assert heading == "error: 5 task rows cannot be used:"
    assert [fault.split(": ")[0].strip() for fault in faults] == [
        f"bad.jsonl:{line}" for line in (2, 4, 5, 6, 7)
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_an_empty_input_is_refused(command: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")

    done = command("materialize", "--input", "empty.jsonl", "--output", "r.jsonl")

    assert (done.returncode, done.stderr) == (
        2,
        "error: the input holds no task rows\n",
    )


def test_the_same_plan_has_the_same_bytes(command: Run, tmp_path: Path) -> None:
    again = ["materialize", "--input", TASKS, "--output", "r.jsonl"]
    command(*again)
    before = digests(tmp_path)

    assert command(*again).returncode == 0

    assert digests(tmp_path) == before


@pytest.mark.parametrize(
    "changed",
    [
        ["--responses-create-params", '{"temperature": 0}', "--num-repeats", "2"],
        ["--num-repeats", "1"],
        ["--agent-name", "other", "--num-repeats", "2"],
    ],
)
def test_a_collected_plan_keeps_its_settings(
    command: Run, half: Path, changed: list[str]
) -> None:
    before = digests(half.parent)

    done = command(
        "materialize", "--input", TASKS, "--output", half, "--limit", "2", *changed
    )

    assert done.returncode == 2
    assert "holds rollouts of another plan; nothing was changed" in done.stderr
    assert " → " in done.stderr
    assert digests(half.parent) == before


def test_repeats_extend_a_collected_plan(command: Run, half: Path) -> None:
    done = command("materialize", "--input", TASKS, "--output", half,
                   "--limit", "2", "--num-repeats", "3")  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6 rollouts of 2 tasks planned, 2 of them new\n")


def test_a_folder_as_a_path_is_refused(command: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()

    for arguments in (
        ["materialize", "--input", TASKS, "--output", "there"],
        ["run", "--demo", "--output", "there"],
        ["collect", "--head-url", "http://127.0.0.1:9", "--output", "there"],
    ):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is a folder; name a file in it, such as" in done.stderr
    done = command("inspect", "there")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is a folder without an output; give a file, such as" in done.stderr


def test_a_derived_name_as_output_is_refused(command: Run) -> None:
    done = command(
        "materialize", "--input", TASKS, "--output", "r_materialized_inputs.jsonl"
    )

    assert done.returncode == 2
    assert "--output names the rollouts file itself" in done.stderr


def test_folders_are_made_for_any_name(command: Run, tmp_path: Path) -> None:
    place = tmp_path / "ein Ort"
    place.mkdir()
    (place / "Aufgäben 1.jsonl").write_bytes(EMBEDDED_TASKS.read_bytes())

    done = command("materialize", "--input", "Aufgäben 1.jsonl",
                   "--output", "neu/目录/roll outs.jsonl", cwd=place)  # fmt: skip
    shown = command("inspect", os.fspath(place / "neu/目录/roll outs.jsonl"))

    assert done.returncode == 0, done.stderr
    assert "0 of 24 planned rollouts collected" in shown.stdout
    assert "roll outs_materialized_inputs.jsonl" in shown.stdout


def test_null_repeats_are_one(command: Run) -> None:
    line = ("materialize", "--input", TASKS, "--output", "r.jsonl")

    done = command(*line, "--num-repeats", "null")

    assert done.returncode == 0, done.stderr
    assert "24 rollouts of 24 tasks planned" in done.stdout


def test_rows_that_only_servers_can_send_are_told(command: Run, tmp_path: Path) -> None:
    row = '{"responses_create_params": {"input": "?"}, "task_source": "math"}\n'
    (tmp_path / "rows.jsonl").write_text(row)
    line = ("materialize", "--input", "rows.jsonl", "--output", "r.jsonl")

    told = command(*line)
    refused = command("collect", "--output", "r.jsonl", "--head-url", "http://h")
    mapped = command(*line, "--agent-map", '{"math": "math_agent"}')

    assert "1 row names a task source and no agent" in " ".join(told.stderr.split())
    assert refused.returncode == 2
    assert "--agent-map names it" in " ".join(refused.stderr.split())
    assert (mapped.returncode, mapped.stderr) == (0, "")
    assert "math_agent" in (tmp_path / "r_materialized_inputs.jsonl").read_text()
