"""`inspect`: what an output holds."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson

from reward_profiling.servers.options import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))


def test_inspect_thresholds_must_be_numbers(command: Run, half: Path) -> None:
    done = command("inspect", half, "--pass-threshold", "nan")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--pass-threshold" in done.stderr


def test_inspect_fits_eighty_columns(command: Run, half: Path) -> None:
    done = command("inspect", half)

    assert (done.returncode, done.stderr) == (3, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "3 of 4 planned rollouts collected (75 %), 1 owed" in lines
    assert ["r.jsonl", "3"] in [line.split()[:2] for line in lines]
    assert [line.split()[0] for line in lines if "capital" in line] == ["0"]
    assert ["0.900", "to", "1", "████████████████████████████████████████", "2"] in [
        line.split() for line in lines
    ]


def test_time_alone_outdates_no_profile(command: Run, half: Path) -> None:
    assert command("profile", "--rollouts", half, "--allow-partial").returncode == 3
    later = half.stat().st_mtime_ns + 10**12  # later than a slow machine ends
    os.utime(half, ns=(later, later))
    assert command("profile", "--rollouts", half, "--allow-partial").returncode == 3

    assert "older than the records" not in command("inspect", half).stdout

    with half.open("ab") as file:
        file.write(half.read_bytes().replace(b'index":0', b'index":1').splitlines()[-1])
    os.utime(half, ns=(later, later))
    assert "older than the records" in command("inspect", half).stdout


def test_inspect_reads_gym_and_writes_json(command: Run, tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "partial"
    for name in ("rollouts.jsonl", "rollouts_materialized_inputs.jsonl"):
        (tmp_path / name).write_bytes((golden / name).read_bytes())

    done = command("inspect", tmp_path, "--json")

    found = orjson.loads(done.stdout)
    assert done.returncode == 3
    assert found["counts"]["collected"] == 4
    assert sum(tenth["num_tasks"] for tenth in found["tenths"]) == 2
    assert [named["task"]["task_index"] for named in found["most_solved"]] == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rollouts.jsonl", "rollouts_materialized_inputs.jsonl",
    ]  # fmt: skip


def test_inspect_of_nothing_is_refused(command: Run) -> None:
    done = command("inspect", "nothing.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: No output at nothing.jsonl; run `materialize` first.\n"
    )
