"""How long rollouts took, as their lines say it."""

from pathlib import Path

from reward_profiling.collecting.on_disk.timings import (
    read_timings,
    seconds_by_task,
    timing_line,
)


def test_a_written_timing_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "timings.jsonl"
    stamps = {"_ng_task_index": "t", "_ng_rollout_index": 2, "agent_ref": {}}
    line = timing_line(stamps, started=1.23456, seconds=0.9876, retries=1)
    path.write_bytes(line + b"\n")

    (timing,) = read_timings(path)

    assert (timing.task_index, timing.rollout_index) == ("t", 2)
    assert (timing.started, timing.seconds) == (1.235, 0.988)


def test_damaged_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "timings.jsonl"
    path.write_bytes(
        b'{"_ng_task_index":0,"seconds":2.0}\n'
        b"\xff\n{}\n"
        b'{"_ng_task_index":0,"seconds":5.0}\n'
        b'{"_ng_task_index":1,"sec'
    )

    assert [timing.seconds for timing in read_timings(path)] == [2.0, 5.0]
    assert seconds_by_task(path) == {0: 5.0}


def test_there_may_be_no_timings(tmp_path: Path) -> None:
    assert list(read_timings(tmp_path / "none")) == []
