"""Recorded failures: counted by rollout, read whole, and told apart."""

from pathlib import Path

import pytest

from reward_profiling.collecting.on_disk.failures import (
    Failures,
    attempt_of,
    read_failures,
    scan_failures,
)
from reward_profiling.errors import RecordError

KEY = b'"_ng_task_index":0,"_ng_rollout_index":1'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give two failures of one rollout, and a damaged line between them."""
    written = tmp_path / "failures.jsonl"
    written.write_bytes(
        b'{"_ng_failure_class":"a",%b}\n{"_ng\n'
        b'{"_ng_failure_class":"b","_ng_failure_terminal":true,%b}\n' % (KEY, KEY)
    )
    return written


def test_damage_is_refused_by_line(path: Path) -> None:
    for read in (scan_failures, lambda path: list(read_failures(path))):
        with pytest.raises(RecordError, match=r"failures.jsonl:2: "):
            read(path)


def test_damage_may_be_skipped(path: Path) -> None:
    found = read_failures(path, skip_damaged=True)

    assert [row["_ng_failure_class"] for _, row in found] == ["a", "b"]


def test_failures_are_counted_by_rollout(path: Path) -> None:
    first, _, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + last + b'{"_ng_task')  # one is on its way

    assert scan_failures(path) == {(0, 1): Failures(2, "b", is_terminal=True)}


def test_there_may_be_no_failures(tmp_path: Path) -> None:
    assert scan_failures(tmp_path / "none") == {}
    assert list(read_failures(tmp_path / "none")) == []


def test_attempts_are_told_apart() -> None:
    one, two = (b'{"_ng_attempt_index":%d,%b}' % (n, KEY) for n in (1, 2))

    assert attempt_of(one) == attempt_of(b'{"x":1,"_ng_attempt_index":1,%b}' % KEY)
    assert attempt_of(one) != attempt_of(two)
