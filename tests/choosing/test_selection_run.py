"""Selecting from real files: what is dealt adds up to the source, byte for byte."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_profiling.choosing.selecting.targets import Targets
from reward_profiling.choosing.selection import SelectionSummary, SelectOptions
from reward_profiling.choosing.selection_run import select_rows
from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions

Row = dict[str, Any]
# Rewards of the repeats of each task; null is a record without a reward.
REWARDS: list[list[float | None]] = [
    [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, None, None, None],
]  # fmt: skip


def source_lines(count: int = 5) -> list[bytes]:
    # Numbers, spaces and escapes as another program wrote them.
    return [
        b'{"responses_create_params": {"input": "task %d"}, "weight": 1.10, '
        b'"note": "\\u00e9", "pass_rate": %.1f, "agent_ref": {"name": "a"}}'
        % (index, index / 10)
        for index in range(count)
    ]


def planned(folder: Path, lines: Sequence[bytes], **options: object) -> RunFiles:
    source = folder / "tasks.jsonl"
    source.write_bytes(b"\n".join(lines) + b"\n")
    files = RunFiles(folder / "r.jsonl")
    given = PlanOptions.made({"num_repeats": 4, **options})
    materialize(check_input(source, given), files)
    return files


def collected(files: RunFiles, rewards: Sequence[Sequence[float | None]]) -> None:
    rows = [
        orjson.loads(r) for r in files.materialized_inputs.read_bytes().splitlines()
    ]
    with files.rollouts.open("wb") as file:
        for row in rows:
            key = row["_ng_task_index"], row["_ng_rollout_index"]
            record = {
                "_ng_task_index": key[0],
                "_ng_rollout_index": key[1],
                "agent_ref": row["agent_ref"],
                "reward": rewards[key[0]][key[1] % 4],
                "response": {"output": []},
            }
            file.write(orjson.dumps(record) + b"\n")


def select(
    files: RunFiles, source: Path | None = None, **options: object
) -> tuple[SelectionSummary, dict[str, list[bytes]]]:
    targets = Targets.beside(files, None)
    summary = select_rows(
        source or files.rollouts.with_name("tasks.jsonl"),
        files,
        targets,
        SelectOptions.made({"open_ends": True, **options}),
    )
    dealt = {
        path.stem.removeprefix("r_"): path.read_bytes().splitlines()
        for path in targets.paths
    }
    return summary, dealt


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    files = planned(tmp_path, source_lines())
    collected(files, REWARDS)
    return files


def test_rows_are_dealt_unchanged_and_in_order(files: RunFiles) -> None:
    lines = source_lines()

    summary, dealt = select(files)

    assert dealt == {
        "kept": lines[1:3], "rejected": [lines[0], lines[3]],
        "undetermined": [lines[4]],
    }  # fmt: skip
    assert (summary.num_rows, summary.num_tasks) == (5, 5)
    assert summary.reasons == {
        "passes too rarely": 1, "passes too often": 1,
        "fewer than 2 scored rollouts": 1,
    }  # fmt: skip
    assert summary.mean_pass_rate == 0.375


def test_a_new_rate_replaces_the_old_one(
    files: RunFiles,
) -> None:
    lines = source_lines()

    summary, dealt = select(files, annotate="pass_rate", order="easy-first")

    assert dealt["kept"] == [
        lines[2].replace(b'"pass_rate": 0.2', b'"pass_rate": 0.5'),
        lines[1].replace(b'"pass_rate": 0.1', b'"pass_rate": 0.25'),
    ]
    assert dealt["rejected"][0] == lines[0].replace(b": 0.0,", b": 0.0,")
    old = summary.old_rates
    assert old is not None
    assert (old.field, old.num_rows, old.num_moved) == ("pass_rate", 5, 2)
    assert (old.old_mean, old.new_mean) == pytest.approx((0.2, 0.55))


def test_unanswered_records_can_be_left_out(
    files: RunFiles,
) -> None:
    said = {"type": "message", "content": [{"type": "output_text", "text": "42"}]}
    records = [orjson.loads(r) for r in files.rollouts.read_bytes().splitlines()]
    for record in records:  # what fails says nothing, but for task 2
        if record["reward"] or record["_ng_task_index"] == 2:
            record["response"]["output"] = [said]
    files.rollouts.write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in records))

    summary, dealt = select(files, leave_out_empty=True)

    assert dealt["kept"] == [source_lines()[2]]
    assert summary.reasons == {
        "no scored rollout": 1, "fewer than 2 scored rollouts": 2,
        "passes too often": 1,
    }  # fmt: skip


def test_a_new_annotation_is_appended(files: RunFiles) -> None:
    _, dealt = select(files, annotate="solved")

    assert dealt["kept"][0] == source_lines()[1][:-1] + b', "solved": 0.25}'
    assert dealt["undetermined"][0].endswith(b', "solved": 1.0}')


def test_identical_rows_are_one_task(tmp_path: Path) -> None:
    lines = source_lines(2)
    files = planned(tmp_path, [lines[0], lines[1], lines[0]])
    collected(files, [[0, 1, 0, 1], [0, 0, 0, 0]])

    summary, dealt = select(files)

    assert dealt["kept"] == [lines[0], lines[0]]
    assert (summary.num_rows, summary.num_tasks) == (3, 2)


def test_equal_rows_may_be_tasks_of_their_own(tmp_path: Path) -> None:
    (row,) = source_lines(1)
    numbered = [b'{"_ng_task_index": %d, ' % index + row[1:] for index in range(5)]
    files = planned(tmp_path, numbered)
    collected(files, REWARDS)
    source = tmp_path / "equal.jsonl"
    source.write_bytes(b"\n".join([row] * 5) + b"\n")

    summary, dealt = select(files, source)

    assert (summary.num_rows, summary.num_tasks) == (5, 5)
    sizes = {verdict: len(lines) for verdict, lines in dealt.items()}
    assert sizes == {"kept": 2, "rejected": 2, "undetermined": 1}
    assert summary.mean_pass_rate == 0.375
    # One of them gone: nobody knows which.
    source.write_bytes(b"\n".join([row] * 4) + b"\n")
    with pytest.raises(DatasetError, match="say the same"):
        select(files, source)


def test_rows_past_the_limit_are_undetermined(tmp_path: Path) -> None:
    lines = source_lines()
    files = planned(tmp_path, lines, limit=2)
    collected(files, REWARDS)

    summary, dealt = select(files)

    assert dealt["undetermined"] == lines[2:]
    assert summary.reasons["not in the plan"] == 3


def test_plan_settings_do_not_hide_a_row(tmp_path: Path) -> None:
    files = planned(
        tmp_path, source_lines(), responses_create_params={"temperature": 1.0},
        agent_name="b", num_repeats_add_seed=True,
    )  # fmt: skip
    collected(files, REWARDS)

    _, dealt = select(files)

    assert dealt["kept"] == source_lines()[1:3]


def test_a_shuffled_source_is_matched(files: RunFiles, tmp_path: Path) -> None:
    other = tmp_path / "shuffled.jsonl"
    lines = source_lines()
    other.write_bytes(b"\r\n".join([lines[2], lines[0], lines[1]]))

    _, dealt = select(files, other)

    assert dealt["kept"] == [lines[2], lines[1]]


def test_a_row_keeps_its_line_ending(files: RunFiles, tmp_path: Path) -> None:
    other = tmp_path / "windows.jsonl"
    content = b"\r\n".join(source_lines())
    other.write_bytes(b"\xef\xbb\xbf" + content)

    select(files, other)

    paths = Targets.beside(files, None).paths
    written = b"".join(path.read_bytes() for path in paths)
    assert sorted(written.splitlines(keepends=True)) == sorted(
        (content + b"\r\n").splitlines(keepends=True)
    )


def test_a_selection_is_a_source_again(files: RunFiles, tmp_path: Path) -> None:
    other = tmp_path / "annotated.jsonl"
    select(files, annotate="solved")
    paths = Targets.beside(files, None).paths
    other.write_bytes(b"".join(path.read_bytes() for path in paths))

    summary, dealt = select(files, other, annotate="solved")

    assert (summary.kept, summary.rejected, summary.undetermined) == (2, 2, 1)
    assert summary.old_rates is not None
    assert (summary.old_rates.num_rows, summary.old_rates.num_moved) == (5, 0)
    assert dealt["kept"][0] == source_lines()[1][:-1] + b', "solved": 0.25}'


def test_odd_earlier_rates_are_read_or_named(tmp_path: Path) -> None:
    told = ['"3/4"', '"50%"', "0.25", "75", '{"c": 1}']
    lines = [
        line.replace(b'"pass_rate": 0.%d' % index, b'"pass_rate": ' + one.encode())
        for index, (line, one) in enumerate(zip(source_lines(), told, strict=True))
    ]
    files = planned(tmp_path, lines)
    collected(files, REWARDS)

    summary, _ = select(files)

    assert summary.old_rates is not None
    assert (summary.old_rates.num_rows, summary.old_rates.old_mean) == (3, 0.5)
    (warning,) = summary.warnings
    assert warning.startswith("2 rows hold no rate between 0 and 1 in 'pass_rate'")


def test_stamps_never_reach_a_selection(files: RunFiles, tmp_path: Path) -> None:
    rows = files.materialized_inputs.read_bytes().splitlines()
    other = tmp_path / "stamped.jsonl"
    other.write_bytes(b"\n".join(rows[4:8]))

    summary, dealt = select(files, other)

    assert b"_ng_" not in b"".join(dealt["kept"])
    assert len(dealt["kept"]) == 4
    assert "4 rows held stamps" in summary.warnings[0]


def test_several_agents_need_one_to_decide(tmp_path: Path) -> None:
    files = planned(tmp_path, source_lines(2), fan_out={"a": ["x", "y"]})
    rows = [
        orjson.loads(r) for r in files.materialized_inputs.read_bytes().splitlines()
    ]
    with files.rollouts.open("wb") as file:
        for row in rows:
            is_x = row["agent_ref"]["name"] == "x"
            reward = float(is_x and row["_ng_rollout_index"] % 2)
            record = {**row, "reward": reward, "response": {"output": []}}
            file.write(orjson.dumps(record) + b"\n")

    with pytest.raises(ConfigError, match=r"several agents \(x, y\)"):
        select(files)
    assert len(select(files, agent="x")[1]["kept"]) == 2
    assert len(select(files, agent="y")[1]["rejected"]) == 2
    with pytest.raises(ConfigError, match="ran none of the tasks; there are x, y"):
        select(files, agent="z")


def test_another_source_is_refused(files: RunFiles, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"responses_create_params": {"input": "another"}}')

    with pytest.raises(ConfigError, match=r"no row of .*other\.jsonl was planned"):
        select(files, other)
    assert not Targets.beside(files, None).kept.exists()


def test_a_mismatched_row_index_is_refused(files: RunFiles, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(source_lines()[0][:-1] + b', "_ng_task_index": 3}')

    with pytest.raises(DatasetError, match=r"other\.jsonl:1: says something else"):
        select(files, other)


def test_sources_and_foreign_files_are_kept(files: RunFiles, tmp_path: Path) -> None:
    source = tmp_path / "tasks.jsonl"
    options = SelectOptions(open_ends=True)
    foreign = tmp_path / "train.jsonl"
    foreign.write_text("{}")
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "notes.txt").touch()

    for output, message in (
        (source, "is read here"),
        (foreign, "no earlier selection"),
    ):
        with pytest.raises(ConfigError, match=message):
            select_rows(source, files, Targets.beside(files, output), options)
    with pytest.raises(ConfigError, match="holds other files"):
        select_rows(
            source, files,
            replace(Targets.beside(files, None), dataset_folder=folder), options,
        )  # fmt: skip
    assert foreign.read_text() == "{}"


def test_a_selection_replaces_an_older_one(files: RunFiles) -> None:
    select(files)

    _, dealt = select(files, open_ends=False, min_pass_rate="1/2")  # noqa: S106 - a rate

    assert dealt["kept"] == source_lines()[2:4]


def test_a_cut_off_selection_is_completed(
    files: RunFiles,
) -> None:
    blocking = Targets.beside(files, None).rejected
    blocking.mkdir()
    with pytest.raises(OSError, match="directory"):
        select(files)
    blocking.rmdir()

    _, dealt = select(files)

    assert sorted(row for rows in dealt.values() for row in rows) == sorted(
        source_lines()
    )


def test_a_dataset_folder_has_rows_and_a_card(files: RunFiles, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    targets = replace(Targets.beside(files, None), dataset_folder=folder)
    options = SelectOptions(open_ends=True, order="hard-first", annotate="pass_rate")

    summary = select_rows(tmp_path / "tasks.jsonl", files, targets, options)

    lines = (folder / "data" / "train.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) for line in lines]
    assert [row["pass_rate"] for row in rows] == [0.25, 0.5]
    assert rows[0]["responses_create_params"] == {"input": "task 1"}
    text = (folder / "README.md").read_text()
    assert "2 of 5 task rows, selected by pass rate in (0, 1)" in text
    assert str(folder / "README.md") in summary.files
