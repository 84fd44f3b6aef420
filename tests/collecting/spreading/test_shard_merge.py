import shutil
from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import RecordError
from reward_profiling.files.run_files import RunFiles

Line = dict[str, object]
keys = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


def line(task: int, rollout: int, **members: object) -> Line:
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, **members}


def write(path: Path, lines: Iterable[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))


def read(path: Path) -> list[Line]:
    return [orjson.loads(text) for text in path.read_bytes().splitlines()]


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output with one record, and two shards of one and two records."""
    files = RunFiles(tmp_path / "r.jsonl")
    write(files.rollouts, [line(0, 0, reward=0)])
    write(files.shard(0, 2).rollouts, [line(0, 1, reward=1)])
    write(files.shard(1, 2).rollouts, [line(0, 0, reward=9), line(1, 0, reward=2)])
    write(files.shard(1, 2).failures, [line(2, 0, _ng_failure_class="c")])
    return files


def names(files: RunFiles) -> list[str]:
    return sorted(path.name for path in files.rollouts.parent.iterdir())


def test_merged_shards_are_gone(files: RunFiles) -> None:
    summary = merge_shards(files)

    assert [one["reward"] for one in read(files.rollouts)] == [0, 1, 2]
    assert (summary.num_shards, summary.merged) == (2, 2)
    assert names(files) == ["r.jsonl", "r_failures.jsonl"]


def test_the_first_of_two_records_is_kept(
    files: RunFiles,
) -> None:
    summary = merge_shards(files)

    assert read(files.rollouts)[0]["reward"] == 0
    assert summary.copies == 1


def test_bytes_of_a_record_are_kept(files: RunFiles) -> None:
    odd = b'{ "_ng_rollout_index":5,"_ng_task_index":5, "x":1.50, "y":"\\u00e9" }'
    files.shard(0, 2).rollouts.write_bytes(odd)

    merge_shards(files)

    assert odd + b"\n" in files.rollouts.read_bytes()


def test_a_kill_after_the_merge_is_harmless(files: RunFiles, tmp_path: Path) -> None:
    saved = shutil.copytree(tmp_path, tmp_path.with_name("saved"))
    merge_shards(files)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in saved.glob("*-shard-*"):
        shutil.copy(path, tmp_path)

    summary = merge_shards(files)

    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before
    assert (summary.merged, summary.copies) == (0, 3)


@pytest.mark.parametrize("num_removed", range(3))
def test_a_kill_between_removals_is_harmless(files: RunFiles, num_removed: int) -> None:
    shard = files.shard(1, 2)
    write(files.rollouts, [line(0, 0), line(0, 1), line(1, 0)])
    shutil.copy(shard.failures, files.failures)
    for path in [shard.timings, shard.failures, shard.rollouts][:num_removed]:
        path.unlink(missing_ok=True)

    summary = merge_shards(files)

    assert (len(read(files.rollouts)), summary.merged) == (3, 0)
    assert len(read(files.failures)) == 1
    assert names(files) == ["r.jsonl", "r_failures.jsonl"]


def test_attempts_are_merged_without_copies(
    files: RunFiles,
) -> None:
    first, second = line(2, 0), line(2, 0, _ng_attempt_index=1)
    write(files.failures, [first])
    write(files.shard(0, 2).failures, [first, second])
    write(files.shard(1, 2).failures, [second, line(3, 0)])

    merge_shards(files)

    assert read(files.failures) == [first, second, line(3, 0)]


def test_a_damaged_timing_stops_no_merge(files: RunFiles) -> None:
    timing = line(0, 1, seconds=0.5)
    write(files.shard(0, 2).timings, [timing])
    files.shard(1, 2).timings.write_bytes(b'{"_ng_task')

    merge_shards(files)

    assert files.timings.read_bytes() == orjson.dumps(timing) + b'\n{"_ng_task\n'
    assert not list(files.rollouts.parent.glob("*-shard-*"))


def test_a_torn_line_stops_no_merge(files: RunFiles) -> None:
    part = files.shard(1, 2)
    part.rollouts.write_bytes(part.rollouts.read_bytes() + b'{"_ng_task_index":4,"_n')
    whole = part.rollouts.read_bytes().count(b"\n")

    merged = merge_shards(files)

    assert merged.merged >= whole
    assert b"_ng_task_index" in part.damaged.read_bytes()
    assert files.rollouts.read_bytes().endswith(b"}\n")


def test_a_lax_record_keeps_its_bytes(files: RunFiles) -> None:
    odd = b'{"reward":NaN,"said":"\\ud800","_ng_task_index":4,"_ng_rollout_index":0}\n'
    with files.shard(1, 2).rollouts.open("ab") as file:
        file.write(odd)

    summary = merge_shards(files)

    assert (summary.merged, summary.set_aside) == (3, 0)
    assert files.rollouts.read_bytes().endswith(odd)


def test_an_unreadable_record_is_set_aside(
    files: RunFiles,
) -> None:
    part = files.shard(1, 2)
    deep = b"[" * 2000 + b"]" * 2000
    with part.rollouts.open("ab") as file:
        file.write(b'{"x":%b,"_ng_task_index":4,"_ng_rollout_index":0}\n' % deep)

    assert merge_shards(files).set_aside == 1
    assert deep in part.damaged.read_bytes()


def test_a_line_without_key_is_named(files: RunFiles) -> None:
    write(files.shard(0, 2).rollouts, [{"reward": 1}])

    with pytest.raises(RecordError, match=r"0-of-2.jsonl:1: has no _ng_task_index"):
        merge_shards(files)


def test_without_shards_nothing_is_touched(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")

    summary = merge_shards(files)

    assert (summary.num_shards, names(files)) == (0, [])


def test_a_missing_shard_is_named(files: RunFiles) -> None:
    write(files.shard(2, 4).rollouts, [line(7, 0)])

    assert merge_shards(files).missing_shards == ("0/4", "1/4", "3/4")


def test_shards_of_another_output_stay(files: RunFiles) -> None:
    other = RunFiles(files.rollouts.with_name("r2.jsonl")).shard(0, 2).rollouts
    write(other, [line(0, 5)])

    merge_shards(files)

    assert other.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(keys, min_size=1, max_size=4))
def test_each_rollout_is_merged_once(
    tmp_path: Path, shards: list[list[tuple[int, int]]]
) -> None:
    files = RunFiles(tmp_path / "any.jsonl")
    files.rollouts.unlink(missing_ok=True)
    for index, lines in enumerate(shards):
        write(files.shard(index, 5).rollouts, [line(*key) for key in lines])

    summary = merge_shards(files)

    merged = [tuple(one.values()) for one in read(files.rollouts)]
    assert sorted(merged) == sorted({key for lines in shards for key in lines})
    assert summary.merged + summary.copies == sum(map(len, shards))
