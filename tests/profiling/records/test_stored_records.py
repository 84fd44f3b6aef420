"""The columns of an earlier profile: what they save, and when they are not trusted."""

import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from reward_profiling.errors import RecordError
from reward_profiling.files.parquet import numbers, write_parquet
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import ScanEnd, changed_since, glimpse, mark_of
from reward_profiling.profiling.gym.profile_files import write_profile
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.records.rollout_metrics_reader import (
    read_rollout_metrics,
)
from reward_profiling.profiling.records.rollout_metrics_writer import (
    write_rollout_metrics,
)
from reward_profiling.profiling.rollout_table import RolloutTable
from reward_profiling.profiling.run_reading import (
    ProfileRequest,
    read_rollout_table,
    read_run,
)
from reward_profiling.profiling.run_sources import sources_of
from reward_profiling.profiling.summary.run_summary import RunSummary

ANSWER = {"type": "message", "content": [{"type": "output_text", "text": "Paris"}]}


def record(task: int, rollout: int, reward: Any = 0.5, **more: Any) -> bytes:  # noqa: ANN401
    response = {
        "output": [ANSWER],
        "status": "completed",
        "usage": {"output_tokens": 7},
    }
    key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
    return orjson.dumps({"reward": reward, "response": response, **more, **key}) + b"\n"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output of 6 planned rollouts of which 4 are collected."""
    files = RunFiles(tmp_path / "r.jsonl")
    keys = [(task, rollout) for task in range(3) for rollout in range(2)]
    rows = [
        {"_ng_task_index": task, "_ng_rollout_index": r, "agent_ref": {"name": "a"}}
        for task, r in keys
    ]
    files.materialized_inputs.write_bytes(
        b"".join(orjson.dumps(r) + b"\n" for r in rows)
    )
    files.rollouts.write_bytes(
        record(1, 0, 0.25) + record(0, 1, None) + record(0, 0, 1) + record(2, 1, "x")
    )
    return files


def profile(files: RunFiles, **request: bool) -> RunSummary:
    return profile_run(sources_of(files), ProfileRequest(allow_partial=True, **request))


def written(files: RunFiles) -> list[bytes]:
    paths = (files.reward_profiling, files.agent_metrics, files.repeat_level_metrics)
    return [path.read_bytes() for path in paths]


def rebuilt(files: RunFiles) -> list[bytes]:
    profile(files, rebuild=True)
    return written(files)


def test_columns_form_a_table_of_rollouts(files: RunFiles) -> None:
    failure = {"_ng_task_index": 2, "_ng_rollout_index": 0, "_ng_failure_class": "late"}
    files.failures.write_bytes(orjson.dumps(failure) + b"\n")

    profile(files)

    table = pq.read_table(files.rollout_metrics)
    shown = [name for name in table.column_names if not name.startswith("_")]
    assert shown == [
        "task_index", "rollout_index", "agent", "label", "status", "masked", "attempts",
        "failure_class", "reward", "output_tokens", "file", "line",
    ]  # fmt: skip
    rows = table.select(["status", "reward", "attempts", "line"]).to_pydict()
    assert rows == {
        "status": ["scored", "unscored", "scored", "missing", "failed", "unscored"],
        "reward": [1.0, None, 0.25, None, None, None],
        "attempts": [0, 0, 0, 0, 1, 0],
        "line": [3, 2, 1, None, None, 4],
    }


def test_a_metric_may_share_a_column_name(
    files: RunFiles,
) -> None:
    files.rollouts.write_bytes(record(0, 0, 1.0, status=4, line=5, **{"": 6}))

    profile(files)
    first = written(files)
    profile(files)

    table = pq.read_table(files.rollout_metrics)
    assert table["metric/status"][0].as_py() == 4
    assert table["metric/line"][0].as_py() == 5
    assert table["status"][0].as_py() == "scored"
    assert written(files) == first


def test_a_metric_may_share_a_parts_name(
    files: RunFiles,
) -> None:
    odd = {"reward_components": {"b": 0.25}, "reward_components/b": 8}
    files.rollouts.write_bytes(record(0, 0, 1.0, **odd))
    profile(files, replies=True)
    with files.rollouts.open("ab") as file:
        file.write(record(0, 1, 1.0, **odd))

    profile(files)

    assert b'"mean/reward_components/b":8.0' in written(files)[1]
    assert written(files) == rebuilt(files)
    names = pq.read_table(files.rollout_metrics).column_names
    assert len(names) == len(set(names))


def damaged(content: bytes) -> bytes:
    return content[:200] + b"!" + content[201:]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (damaged, "is damaged or foreign"),
        (lambda content: content[:-9], "is damaged or foreign"),
        (lambda _: b"", "is damaged or foreign"),
        (lambda _: b"PAR1 something else PAR1", "is damaged or foreign"),
    ],
)
def test_untrusted_columns_are_made_anew(
    files: RunFiles, change: Callable[[bytes], bytes], said: str
) -> None:
    expected = rebuilt(files)
    good = pq.read_table(files.rollout_metrics)
    files.rollout_metrics.write_bytes(change(files.rollout_metrics.read_bytes()))

    counts = profile(files)

    assert written(files) == expected
    assert any("rebuilt" in text and said in text for text in counts.warnings)
    assert pq.read_table(files.rollout_metrics).equals(good)


def test_another_versions_columns_are_remade(files: RunFiles) -> None:
    expected = rebuilt(files)
    columns = {"task_index": numbers(array("q", [0]))}
    write_parquet(files.rollout_metrics, [columns], '{"version":2}')

    counts = profile(files)

    assert written(files) == expected
    assert any("another version" in text for text in counts.warnings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda old: old.replace(b"0.25", b"0.75"), "was changed, and not only at its"),
        (lambda old: old.replace(b"0.25", b"0.75") + record(1, 1), "was changed"),
        (lambda old: record(1, 1) + old, "was changed, and not only at its end"),
        (lambda old: old[: old.index(b"\n") + 1], "is shorter than it was"),
        (lambda _: b"", "is shorter than it was"),
    ],
)
def test_changed_records_are_read_again(
    files: RunFiles, change: Callable[[bytes], bytes], said: str
) -> None:
    profile(files)
    before = files.rollouts.stat()
    files.rollouts.write_bytes(change(files.rollouts.read_bytes()))
    os.utime(files.rollouts, ns=(before.st_atime_ns, before.st_mtime_ns))

    counts = profile(files)

    assert written(files) == rebuilt(files)
    assert any("rebuilt" in text and said in text for text in counts.warnings)


def changed_in_secret(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, and give it the time back that it had."""
    before = path.stat()
    with path.open("r+b") as file:
        content = change(file.read())
        file.seek(0)
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_long_file_of_equal_size_is_reread(files: RunFiles) -> None:
    with files.rollouts.open("ab") as file:
        file.write(b" " * 20_000_000 + b"\n")
    profile(files)

    changed_in_secret(files.rollouts, lambda old: old.replace(b"0.25", b"0.75"))
    counts = profile(files)

    assert b'"reward":0.75' in written(files)[0]
    assert any("rebuilt" in text for text in counts.warnings)


def test_a_plan_of_equal_size_is_reread(files: RunFiles) -> None:
    profile(files)

    changed_in_secret(
        files.materialized_inputs, lambda old: old.replace(b'"a"', b'"b"')
    )
    profile(files)

    assert b'{"name":"b"}' in written(files)[1]


def test_a_change_while_reading_is_reread(files: RunFiles) -> None:
    seen = glimpse(files.rollouts)
    size = files.rollouts.stat().st_size
    changed_in_secret(files.rollouts, lambda old: old.replace(b"0.25", b"0.75"))

    end = ScanEnd(size, 4, is_torn=False)
    mark = mark_of(files.rollouts, files.rollouts.parent, seen, end)

    said = changed_since(files.rollouts, mark)
    assert said == "was changed, and not only at its end"


def test_a_foreign_profile_is_not_trusted(
    files: RunFiles,
) -> None:
    sources = sources_of(files)
    run = read_run(sources, ProfileRequest(allow_partial=True))
    outputs = write_profile(run)
    expected = written(files)
    files.reward_profiling.write_bytes(b"of another process\n")

    write_rollout_metrics(run, outputs)
    profile(files)

    assert written(files) == expected


def test_a_continued_last_line_is_read(files: RunFiles) -> None:
    files.rollouts.write_bytes(record(0, 0).rstrip())
    profile(files)
    with files.rollouts.open("ab") as file:
        file.write(record(0, 1))

    with pytest.raises(RecordError, match=r"r\.jsonl:1: is not JSON"):
        profile(files)


def test_lines_count_alike_however_they_end(
    files: RunFiles,
) -> None:
    files.rollouts.write_bytes(record(0, 0).rstrip())
    profile(files)
    with files.rollouts.open("ab") as file:
        file.write(b"\r\n" + record(0, 1, None))

    told = profile(files).warnings

    assert [text for text in told if "null" in text] == [
        f"reward null: 1 not scored: {files.rollouts}:2"
    ]


def test_only_new_lines_of_a_file_are_read(files: RunFiles) -> None:
    with files.rollouts.open("ab") as file:
        file.write(b" " * 20_000_000 + b"\n")
    profile(files)
    # What was read is spoilt at a place where no piece of it is looked at.
    with files.rollouts.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"no JSON")
        file.seek(0, os.SEEK_END)
        file.write(record(2, 0, 0.625))

    counts = profile(files)

    assert counts.collected == 5
    assert b'"reward":0.625' in written(files)[0]
    with pytest.raises(RecordError, match=r"r\.jsonl:5: is not JSON"):
        profile(files, rebuild=True)


def test_a_rewritten_long_file_is_read_again(
    files: RunFiles,
) -> None:
    with files.rollouts.open("ab") as file:
        file.write(b" " * 20_000_000 + b"\n")
    profile(files)
    (mark,) = read_rollout_metrics(files.rollout_metrics).head.sources

    assert changed_since(files.rollouts, mark) is None
    os.utime(files.rollouts)

    said = changed_since(files.rollouts, mark)
    assert said == "was written to, and not only at its end"


def test_columns_move_with_their_records(files: RunFiles, tmp_path: Path) -> None:
    profile(files)
    expected = written(files)
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in list(tmp_path.glob("r*")):
        path.rename(moved / path.name)

    counts = profile(RunFiles(moved / "r.jsonl"))

    assert not any("anew" in text for text in counts.warnings)
    assert written(RunFiles(moved / "r.jsonl")) == expected


def test_unchanged_results_are_left_alone(files: RunFiles) -> None:
    first = profile(files)
    paths = [files.rollout_metrics, files.reward_profiling, files.agent_metrics]
    before = [path.stat().st_mtime_ns for path in paths]

    assert profile(files) == first
    assert [path.stat().st_mtime_ns for path in paths] == before

    expected = written(files)
    files.agent_metrics.unlink()
    files.reward_profiling.write_bytes(b"changed")
    profile(files)
    assert written(files) == expected


def test_columns_follow_the_failures(files: RunFiles) -> None:
    profile(files)
    failure = {"_ng_task_index": 1, "_ng_rollout_index": 1, "_ng_failure_class": "late"}
    files.failures.write_bytes(orjson.dumps(failure) + b"\n")
    profile(files)
    statuses = pq.read_table(files.rollout_metrics)["status"].to_pylist()
    assert statuses == ["scored", "unscored", "scored", "failed", "missing", "unscored"]


def test_columns_and_records_agree(files: RunFiles) -> None:
    with files.rollouts.open("ab") as file:
        file.write(
            record(1, 1, 1.0, reward_components={"form": 1, "fact": 0.5, "t": "x"})
        )
    read = read_rollout_table(files)
    profile(files, replies=True)

    stored = read_rollout_table(files)

    assert shown(stored) == shown(read)
    assert read.answer[0] == read.answer[1] != 0
    assert list(read.components) == ["form", "fact"]


def shown(table: RolloutTable) -> dict[str, str]:
    """Return a table's columns as text, in which NaN equals NaN."""
    return {name: repr(getattr(table, name)) for name in table.__struct_fields__}


def test_columns_gain_replies_on_request(files: RunFiles) -> None:
    profile(files)

    counts = profile(files, replies=True)

    assert not any("anew" in text for text in counts.warnings)
    assert pq.read_table(files.rollout_metrics)["empty"].to_pylist()[0] is False
