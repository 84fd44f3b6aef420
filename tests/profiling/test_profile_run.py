from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from reward_profiling.errors import (
    ConfigError,
    DuplicateRolloutError,
    MissingRolloutsError,
    RecordError,
    UnknownRolloutError,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import RunSources
from reward_profiling.profiling.summary.run_summary import RunSummary

GOLDEN = Path(__file__).parents[1] / "golden"
"""Plans and records, with the three files that Gym 0.7.0 made of them."""
CASES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
PLAN = "rollouts_materialized_inputs.jsonl"
PROFILE = (
    "rollouts_reward_profiling.jsonl",
    "rollouts_agent_metrics.json",
    "rollouts_repeat_level_metrics.json",
)


def line(task: Any, rollout: Any, **fields: Any) -> bytes:  # noqa: ANN401
    key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
    return orjson.dumps({**fields, **key})


def written(
    folder: Path, plan: list[bytes], records: list[bytes], *, partial: bool = False
) -> RunSummary:
    (folder / PLAN).write_bytes(b"\n".join(plan) + b"\n")
    (folder / "rollouts.jsonl").write_bytes(b"\n".join(records) + b"\n")
    return profiled(folder / PLAN, folder / "rollouts.jsonl", partial=partial)


def profiled(inputs: Path, *rollouts: Path, partial: bool = False) -> RunSummary:
    sources = RunSources(inputs, rollouts, RunFiles(rollouts[0]))
    return profile_run(sources, ProfileRequest(allow_partial=partial))


def profile_bytes(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in PROFILE]


def task_row(folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = orjson.loads(profile_bytes(folder)[0].splitlines()[0])
    return row


@pytest.mark.parametrize("case", CASES)
def test_profile_equals_gyms_to_the_byte(case: str, tmp_path: Path) -> None:
    golden = GOLDEN / case
    plan = (golden / PLAN).read_bytes().splitlines()
    records = (golden / "rollouts.jsonl").read_bytes().splitlines()

    written(tmp_path, plan, records, partial=True)

    assert profile_bytes(tmp_path) == profile_bytes(golden)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_line_order_never_changes_the_files(
    case: str, seed: int, tmp_path: Path
) -> None:
    golden = GOLDEN / case
    plan = (golden / PLAN).read_bytes().splitlines()
    records = (golden / "rollouts.jsonl").read_bytes().splitlines()
    Random(seed).shuffle(plan)  # noqa: S311 - no secret
    Random(seed).shuffle(records)  # noqa: S311 - no secret

    written(tmp_path, plan, records, partial=True)

    assert profile_bytes(tmp_path) == profile_bytes(golden)


def test_line_endings_change_nothing(
    tmp_path: Path,
) -> None:
    golden = GOLDEN / "fan_out"
    for name in (PLAN, "rollouts.jsonl"):
        content = (golden / name).read_bytes().replace(b"\n", b"\r\n\r\n").rstrip()
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content)

    profiled(tmp_path / PLAN, tmp_path / "rollouts.jsonl")

    assert profile_bytes(tmp_path) == profile_bytes(golden)


def test_rewards_an_ulp_apart_are_profiled(tmp_path: Path) -> None:
    records = [line(0, 0, reward=0.3), line(0, 1, reward=0.30000000000000004)]

    written(tmp_path, [line(0, 0), line(0, 1)], records)

    assert task_row(tmp_path)["max/reward"] == 0.30000000000000004


def test_nanosecond_rewards_are_profiled(tmp_path: Path) -> None:
    written(tmp_path, [line(0, 0)], [line(0, 0, reward=1.7e18)])

    assert task_row(tmp_path)["mean/reward"] == 1.7e18


ROLLOUT = "rollouts.jsonl"
COLUMNS = "rollouts_rollout_metrics.parquet"


@pytest.mark.parametrize(
    ("plan", "records", "error", "message"),
    [
        ([line(0, 0), line(0, 0)], [line(0, 0)], DuplicateRolloutError,
         rf"{PLAN}:2: task 0 repeat 0 is already in line 1"),
        ([line(0, 0)], [line(0, 0), b"", line(0, 0)], DuplicateRolloutError,
         rf"{ROLLOUT}:3: task 0 repeat 0 is already in line 1"),
        ([line(0, 0)], [line(0, 1)], UnknownRolloutError, "task 0 repeat 1"),
        ([line(0, 0), line(0, 1)], [line(0, 1)], MissingRolloutsError,
         "1 of 2 planned rollouts have no record: task 0 repeat 0"),
        ([line(0, 0)], [b"<PLACEHOLDER ROW>"], RecordError,
         rf"{ROLLOUT}:1: is not JSON: <PLACEHOLDER ROW>"),
        ([line(0, 0)], [b'{"reward":1}'], RecordError,
         rf"{ROLLOUT}:1: has no _ng_task_index"),
        ([line(0, 0)], [line(0, 0, response="oops")], RecordError,
         rf"{ROLLOUT}:1: response is text, not an object"),
        ([line(0, 0)], [line(0, 0)[:-1]], RecordError, rf"{ROLLOUT}:1: is not JSON"),
    ],
)  # fmt: skip
def test_contradictory_files_write_nothing(
    plan: list[bytes],
    records: list[bytes],
    error: type[Exception],
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message):
        written(tmp_path, plan, records)

    assert sorted(path.name for path in tmp_path.iterdir()) == [ROLLOUT, PLAN]


@pytest.mark.parametrize("missing", [PLAN, ROLLOUT])
def test_missing_file_is_named(missing: str, tmp_path: Path) -> None:
    for name in {PLAN, ROLLOUT} - {missing}:
        (tmp_path / name).write_bytes(line(0, 0))

    with pytest.raises(ConfigError, match=f"{missing} does not exist"):
        profiled(tmp_path / PLAN, tmp_path / ROLLOUT)


def test_nothing_collected_makes_empty_files(tmp_path: Path) -> None:
    written(tmp_path, [line(0, 0)], [], partial=True)

    assert profile_bytes(tmp_path) == [b"", b"[]", b"[]"]


def test_a_profile_replaces_an_older_one(tmp_path: Path) -> None:
    written(tmp_path, [line(0, 0), line(1, 0)], [line(0, 0), line(1, 0)])

    written(tmp_path, [line(0, 0)], [line(0, 0)])

    assert len(profile_bytes(tmp_path)[0].splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([
        PLAN, ROLLOUT, *PROFILE, COLUMNS
    ])  # fmt: skip


def test_the_records_name_the_files(tmp_path: Path) -> None:
    (tmp_path / "plan.jsonl").write_bytes(line(0, 0))
    (tmp_path / "run.v1").write_bytes(line(0, 0))

    profiled(tmp_path / "plan.jsonl", tmp_path / "run.v1")

    assert (tmp_path / "run_reward_profiling.jsonl").exists()
    assert not (tmp_path / "plan_reward_profiling.jsonl").exists()


def test_a_sample_is_a_plan_row_without_key(tmp_path: Path) -> None:
    plan = [line(0, 0, q="é", _ng_environment_server="e")]

    written(tmp_path, plan, [line(0, 0, reward=1)])

    assert (
        '"sample":{"q":"é","_ng_environment_server":"e"}'.encode()
        in (profile_bytes(tmp_path)[0])
    )
