"""A run whose plan or manifest was damaged: it has them again, and goes on."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.observing import keys, planned

Run = Callable[..., CompletedProcess[str]]


def cut(plan: Path) -> None:
    plan.write_bytes(b"".join(plan.read_bytes().splitlines(keepends=True)[:40]))


def tear(plan: Path) -> None:
    plan.write_bytes(plan.read_bytes()[:-30])


def spoil_manifest(plan: Path) -> None:
    plan.with_name("r_run.json").write_bytes(b'{"torn')


@pytest.mark.parametrize("damage", [cut, tear, Path.unlink, spoil_manifest])
def test_a_run_mends_its_plan(
    command: Run, api_url: str, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    output, plan = tmp_path / "r.jsonl", tmp_path / "r_materialized_inputs.jsonl"
    line = ("--output", output, "--num-repeats", "2")
    command("run", "--demo", *line, PREFECT_API_URL=api_url)
    whole = plan.read_bytes()
    output.write_bytes(b"".join(output.read_bytes().splitlines(keepends=True)[:-9]))
    damage(plan)

    done = command("run", "--demo", *line, PREFECT_API_URL=api_url)

    assert done.returncode == 0, done.stderr
    assert plan.read_bytes() == whole
    assert keys(output) == planned(output)
