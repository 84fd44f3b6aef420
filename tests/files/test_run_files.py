import pickle
from glob import glob
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("rollouts.jsonl", "rollouts"),
        ("a.b.jsonl", "a.b"),
        ("noext", "noext"),
        ("run.v1", "run"),
    ],
)
def test_files_are_named_from_the_stem(name: str, stem: str) -> None:
    files = RunFiles(Path("out") / name)

    assert files.materialized_inputs == Path(f"out/{stem}_materialized_inputs.jsonl")
    assert files.failures == Path(f"out/{stem}_failures.jsonl")
    assert files.reward_profiling == Path(f"out/{stem}_reward_profiling.jsonl")
    assert files.agent_metrics == Path(f"out/{stem}_agent_metrics.json")
    assert files.repeat_level_metrics == Path(f"out/{stem}_repeat_level_metrics.json")
    assert files.aggregate_metrics == Path(f"out/{stem}_aggregate_metrics.json")
    assert files.run == Path(f"out/{stem}_run.json")


def test_no_two_files_share_a_name() -> None:
    files = RunFiles(Path("out/rollouts.jsonl"))
    properties = [k for k, v in vars(RunFiles).items() if isinstance(v, property)]

    names = [getattr(files, name) for name in properties] + [files.rollouts]

    assert len(set(names)) == len(names) > 9


@pytest.mark.parametrize(
    "name", ["r_failures.jsonl", "r_materialized_inputs.jsonl", "r_run.json"]
)
def test_a_derived_name_is_no_output(name: str) -> None:
    with pytest.raises(ConfigError, match="derived from an output"):
        RunFiles(Path(name))


def test_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name a file in it"):
        RunFiles(tmp_path)


def test_an_only_shard_is_the_output() -> None:
    files = RunFiles(Path("out/r.jsonl"))

    assert files.shard(0, 1) is files
    assert files.shard(2, 4).rollouts == Path("out/r-shard-2-of-4.jsonl")


def test_shards_are_found_without_sidecars(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r[1].jsonl")
    for shard in (files.shard(1, 2), files.shard(0, 2), files.shard(0, 3)):
        shard.rollouts.touch()
        shard.failures.touch()
    (tmp_path / "r1-shard-0-of-2.jsonl").touch()

    found = [shard.rollouts.name for shard in files.shards()]

    assert found == [f"r[1]-shard-{n}.jsonl" for n in ("0-of-2", "0-of-3", "1-of-2")]


def test_gyms_pattern_finds_shards_alone(
    tmp_path: Path,
) -> None:
    shard = RunFiles(tmp_path / "r.jsonl").shard(0, 2)
    for path in (shard.rollouts, shard.failures, shard.timings):
        path.touch()

    # Gym leaves failures out itself, and takes every other file for records.
    found = {Path(p) for p in glob(f"{tmp_path}/*shard*.jsonl")}  # noqa: PTH207 - as Gym
    assert found == {shard.rollouts, shard.failures}


def test_a_shard_knows_which_it_is() -> None:
    files = RunFiles(Path("out/r.jsonl"))

    assert files.dealt is None
    assert str(files.shard(2, 4).dealt) == "2/4"


def test_files_travel_to_other_processes() -> None:
    files = RunFiles(Path("out/r.jsonl"))

    assert pickle.loads(pickle.dumps(files)) == files  # noqa: S301 - our own
