"""A plan or a manifest that is damaged or lost, and how an output gets it back."""

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from reward_profiling.errors import PlanChangedError, RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import is_planned, materialize
from reward_profiling.planning.on_disk.planned_rollouts import read_planned
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_summary import PlanSummary

Damage = Callable[[RunFiles], object]


def row(number: int) -> dict[str, object]:
    asked = {"input": [{"role": "user", "content": f"question {number}"}]}
    return {"responses_create_params": asked, "agent_ref": {"name": "a"}}


def write_rows(path: Path, *numbers: int) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row(n)) + b"\n" for n in numbers))
    return path


def plan(files: RunFiles, rows: Path, repeats: int = 3) -> PlanSummary:
    return materialize(check_input(rows, PlanOptions(num_repeats=repeats)), files)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", *range(6))


@pytest.fixture
def files(tmp_path: Path, rows: Path) -> RunFiles:
    """Give an output with a record for every rollout but the last."""
    found = RunFiles(tmp_path / "out/r.jsonl")
    plan(found, rows)
    lines = found.materialized_inputs.read_bytes().splitlines()[:-1]
    records = [{**orjson.loads(line), "reward": 1.0} for line in lines]
    found.rollouts.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))
    return found


def spoil_line(files: RunFiles, number: int) -> None:
    lines = files.materialized_inputs.read_bytes().splitlines(keepends=True)
    lines[number] = b'{"torn": \n'
    files.materialized_inputs.write_bytes(b"".join(lines))


def cut(files: RunFiles, size: int) -> None:
    whole = files.materialized_inputs.read_bytes()
    files.materialized_inputs.write_bytes(whole[:-size])


def lose_all(files: RunFiles) -> None:
    files.materialized_inputs.unlink()
    files.run.unlink()


DAMAGES: list[tuple[Damage, str]] = [
    (lambda files: spoil_line(files, 3), "1 damaged line is written again"),
    (lambda files: spoil_line(files, 0), "1 damaged line is written again"),
    (lambda files: cut(files, 50), "1 damaged line is written again"),
    (lambda files: files.materialized_inputs.unlink(), "was missing"),
    (lose_all, "was missing"),
]
NAMES = ["a line within", "the first line", "the end", "the plan", "plan and manifest"]


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=NAMES)
def test_the_same_input_gives_the_plan_back(
    files: RunFiles, rows: Path, damage: Damage, said: str
) -> None:
    before, records = (
        files.materialized_inputs.read_bytes(),
        files.rollouts.read_bytes(),
    )
    damage(files)
    checked = check_input(rows, PlanOptions(num_repeats=3))
    assert not is_planned(checked, files)

    summary = materialize(checked, files)

    assert files.materialized_inputs.read_bytes() == before
    assert files.rollouts.read_bytes() == records
    assert any(said in warning for warning in summary.warnings)
    assert is_planned(checked, files)


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=NAMES)
@pytest.mark.parametrize("numbers", [(0, 1, 2, 3, 5, 4), (0, 1, 2), (9, 1, 2, 3, 4, 5)])
def test_another_input_gives_nothing(
    files: RunFiles, rows: Path, damage: Damage, said: str, numbers: tuple[int, ...]
) -> None:
    del said
    damage(files)
    left = files.materialized_inputs
    before = left.read_bytes() if left.exists() else None

    with pytest.raises(PlanChangedError, match="othing was changed"):
        plan(files, write_rows(rows, *numbers))

    assert (left.read_bytes() if left.exists() else None) == before


def test_records_without_a_prompt_prove_nothing(files: RunFiles, rows: Path) -> None:
    kept = ("_ng_task_index", "_ng_rollout_index", "reward")
    records = map(orjson.loads, files.rollouts.read_bytes().splitlines())
    bare = [{name: record[name] for name in kept} for record in records]
    files.rollouts.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in bare))
    files.materialized_inputs.unlink()
    shutil.copy(files.run, files.run.with_suffix(".kept"))
    files.run.unlink()

    with pytest.raises(PlanChangedError, match="no record shows its prompt"):
        plan(files, rows)

    shutil.copy(files.run.with_suffix(".kept"), files.run)  # it knows the input
    assert plan(files, rows).num_rollouts == 18


@pytest.mark.parametrize("content", [b"", b'{"torn', b"[]", b"\xff\xfe"])
def test_a_damaged_manifest_is_set_aside(
    files: RunFiles, rows: Path, content: bytes
) -> None:
    before = files.materialized_inputs.read_bytes()
    files.run.write_bytes(content)

    summary = plan(files, rows)

    assert files.materialized_inputs.read_bytes() == before
    assert any("was damaged" in warning for warning in summary.warnings)
    assert files.run.with_name("r_run.json.damaged").read_bytes() == content
    assert orjson.loads(files.run.read_bytes())["plan"]["num_rollouts"] == 18


def test_a_damaged_line_says_how_to_mend_it(files: RunFiles) -> None:
    spoil_line(files, 4)

    with pytest.raises(RecordError, match=r":5: .*Run `materialize` again"):
        list(read_planned(files.materialized_inputs))
