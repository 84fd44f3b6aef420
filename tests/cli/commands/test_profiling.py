"""`profile`: whole or partial, several files, and whoever reads what it prints."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.cli.outputs import digests, profiles

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))


def test_a_strict_partial_profile_is_refused(command: Run, half: Path) -> None:
    before = digests(half.parent)

    done = command("profile", "--inputs", "r_materialized_inputs.jsonl",
                   "--rollouts", "r.jsonl")  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert "--allow-partial" in done.stderr
    assert digests(half.parent) == before


def test_a_partial_profile_exits_with_3(command: Run, half: Path) -> None:
    done = command("profile", "--inputs", "r_materialized_inputs.jsonl",
                   "--rollouts", half, "--allow-partial")  # fmt: skip

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("3 of 4 rollouts collected: 1 missing; mean")
    assert half.with_name("r_reward_profiling.jsonl").exists()


def test_an_option_may_include_its_value(command: Run, half: Path) -> None:
    apart = command("profile", "--rollouts", half, "--allow-partial")
    written = profiles(half.parent)

    joined = command("profile", f"--rollouts={half}", "--allow-partial", "--rebuild")

    assert (joined.returncode, joined.stdout) == (apart.returncode, apart.stdout)
    assert profiles(half.parent) == written


def test_several_files_are_profiled_as_one(command: Run, half: Path) -> None:
    first, second, third = half.read_bytes().splitlines(keepends=True)
    half.write_bytes(first)
    half.with_name("s.jsonl").write_bytes(
        second + first.replace(b'"reward":1.0', b'"reward":0.0') + third
    )

    done = command("profile", "--rollouts", half, "--rollouts", "s.jsonl",
                   "--allow-partial")  # fmt: skip

    assert done.returncode == 3
    assert done.stdout.startswith("3 of 4 rollouts collected: 1 missing; mean reward 1")
    assert "1 duplicate records were left out: s.jsonl:2\n" in done.stdout
    assert half.with_name("r_reward_profiling.jsonl").exists()


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("{} | head -n 0; exit ${{PIPESTATUS[0]}}", 3, ""),
        ("{} >&-", 3, ""),
        ("{} > /dev/full", 1, "error: No space left on device\n"),
    ],
    ids=["read no further", "closed", "full"],
)
def test_a_profile_is_whole_with_no_reader(
    half: Path, command_env: dict[str, str], shell: str, code: int, said: str
) -> None:
    line = f"{SCRIPT} profile --rollouts r.jsonl --allow-partial"

    done = subprocess.run(
        ["/bin/bash", "-c", shell.format(line)],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
    rows = half.with_name("r_reward_profiling.jsonl").read_bytes().splitlines()
    assert [orjson.loads(row)["num_rollouts"] for row in rows] == [2, 1]


def test_odd_terminals_and_names_are_no_fault(
    half: Path, command_env: dict[str, str]
) -> None:
    odd = os.fsdecode(b"a\xff.jsonl")
    half.rename(half.with_name(odd))
    plan = "r_materialized_inputs.jsonl"
    line = [SCRIPT, "profile", "--rollouts", odd, "--inputs", plan, "--allow-partial"]

    done = subprocess.run(
        line, cwd=half.parent, env={**command_env, "PYTHONIOENCODING": "ascii"},
        capture_output=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (3, b"")
    assert b"mean reward: mean over the scored tasks ? its standard" in done.stdout
    assert half.with_name(os.fsdecode(b"a\xff_rollout_metrics.parquet")).exists()


@pytest.mark.parametrize(
    "arguments",
    [["inspect", "--json"], ["profile", "--allow-partial", "--insights", "--rollouts"]],
    ids=lambda arguments: arguments[0],
)
def test_odd_names_are_spelled_out(
    half: Path, command: Run, arguments: list[str]
) -> None:
    odd = os.fsdecode(b"a\xff.jsonl")
    for path in list(half.parent.glob("r*")):
        path.rename(path.with_name(odd[:2] + path.name[1:]))

    done = command(*arguments, odd)

    assert (done.returncode, done.stderr) == (3, "")
    written = half.with_name(os.fsdecode(b"a\xff_insights.json"))
    said = written.read_text() if written.exists() else done.stdout
    assert json.loads(said)["output"] == "a\\xff.jsonl"


@pytest.mark.parametrize("wrong", [["--rolouts", "x"], ["--pass-threshold", "half"]])
def test_a_wrong_profile_option_is_explained(command: Run, wrong: list[str]) -> None:
    done = command("profile", "--rollouts", "r.jsonl", *wrong)

    assert (done.returncode, done.stdout) == (2, "")
    assert wrong[0] in done.stderr


@pytest.mark.parametrize("columns", ["²", "many", "0", "-3"])
def test_an_odd_width_is_no_fault(command: Run, half: Path, columns: str) -> None:
    done = command("profile", "--rollouts", half, "--allow-partial", COLUMNS=columns)

    assert (done.returncode, done.stderr) == (3, "")
