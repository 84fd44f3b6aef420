"""Repeats of a task are read as quickly as bytes compare, and as exactly as JSON."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import RecordError
from reward_profiling.files.line_blocks import Block, lines_in, read_blocks
from reward_profiling.planning.on_disk.plan_repeats import TaskReader
from reward_profiling.planning.on_disk.plan_scan import scan_plan

GYM, OURS = (", ", ": "), (",", ":")
ODD = (
    # The index that counts is not the one at the end.
    b'{"_ng_task_index":1,"_ng_rollout_index":1,"m":{"a":1,"_ng_rollout_index":%d}}',
    b'{"_ng_task_index":1,"_ng_rollout_index":1,"m":"\\",\\"_ng_rollout_index\\":%d}"}',
    b'{"_ng_task_index":1,"_ng_rollout_index":1,"x,\\"_ng_rollout_index":%d}',
    b'{"_ng_task_index":1,"_ng_rollout_index":1,"m":[{"a":1,"_ng_rollout_index":%d}]}',
    # It is, in spite of an earlier one.
    b'{"_ng_task_index":1,"_ng_rollout_index":9,"a":0,"_ng_rollout_index":%d}',
    b'{"_ng_rollout_index":%d,"_ng_task_index":1}',
    b'{"_ng_task_index":1,"_ng_rollout_index":%d }',
    b'{"_ng_task_index":1,"_ng_rollout_index":%d}\r',
    b'{"_ng_task_index":"1","_ng_rollout_index":"%d"}',
    b'{"_ng_task_index":1,"_ng_rollout_index":1%d00}',
)


class Planned(msgspec.Struct):
    """What a plan's line is decoded into here."""

    task: int = msgspec.field(name="_ng_task_index")
    rollout_index: int | str = msgspec.field(name="_ng_rollout_index")


def written(task: int, rollout: int, form: tuple[str, str], text: str = "") -> bytes:
    row = {
        "responses_create_params": {"input": text},
        "agent_ref": {"name": f"agent {task % 2}"},
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
    }
    return json.dumps(row, separators=form, ensure_ascii=False).encode()


def planned(form: tuple[str, str]) -> st.SearchStrategy[bytes]:
    small = st.integers(0, 3)
    texts = st.sampled_from(["", "é", '"', "\n"])
    return st.builds(written, small, st.integers(0, 300), st.just(form), texts)


LINES = st.one_of(
    planned(GYM),
    planned(OURS),
    st.builds(lambda form, at: form % at, st.sampled_from(ODD), st.integers(0, 3)),
)


def expected(text: bytes) -> list[tuple[Any, Any, str | None, int]]:
    found, place = [], 0
    for line in text.split(b"\n"):
        if line:
            row = json.loads(line)
            agent = (row.get("agent_ref") or {}).get("name")
            key = row["_ng_task_index"], row["_ng_rollout_index"]
            found.append((*key, agent, place))
        place += len(line) + 1
    return found


def read(path: Path) -> list[tuple[Any, Any, str | None, int]]:
    plan = scan_plan(path)
    return [
        (plan.task[row], plan.rollout[row], plan.runners[runner][0], place)
        for row, (runner, place) in enumerate(zip(plan.runner, plan.place, strict=True))
    ]


@pytest.mark.parametrize("end", [b"\n", b""])
@given(lines=st.lists(LINES, min_size=1, max_size=12))
def test_a_plan_is_read_as_line_by_line(
    lines: list[bytes], end: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.jsonl"
    path.write_bytes(b"\n".join(lines) + end)

    assert read(path) == expected(path.read_bytes())


@pytest.mark.parametrize("form", [GYM, OURS])
def test_a_task_is_decoded_once_for_repeats(form: tuple[str, str]) -> None:
    lines = [written(task, at, form, "é" * 50) for task in range(3) for at in range(4)]
    text = b"\n".join(lines) + b"\n"
    block = Block(bytearray(text), 0, len(text), 0, is_open=False)
    decoded = []

    def decode(line: memoryview) -> Planned:
        decoded.append(bytes(line))
        return _decode(line)

    found = TaskReader(decode).read(block, lines_in(block))

    assert decoded == lines[::4]
    assert found is not None
    rows, indices = found
    assert [row.task for row in rows] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert indices == [0, 1, 2, 3] * 3


@pytest.mark.parametrize("size", [50_000, 400_000])
def test_repeats_go_on_in_the_next_block(size: int, tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    lines = [
        written(task, at, OURS, "x" * size) for task in range(4) for at in range(9)
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    decoded = []

    def decode(line: memoryview) -> Planned:
        decoded.append(bytes(line))
        return _decode(line)

    reader = TaskReader(decode)
    for block in read_blocks(path):
        assert reader.read(block, lines_in(block)) is not None

    assert decoded == lines[::9]
    assert read(path) == expected(path.read_bytes())


def test_a_task_is_remembered_over_other_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "plan.jsonl"
    repeats = [written(1, at, OURS, "x" * 100_000) for at in range(12)]
    others = [written(task, 0, GYM, "y" * 100_000) for task in range(12)]
    path.write_bytes(b"\n".join([*repeats, *others, *repeats, *others]))

    assert read(path) == expected(path.read_bytes())


@pytest.mark.parametrize(
    "bad",
    [
        b'{"_ng_task_index":1,"_ng_rollout_index":1',
        b'{"_ng_task_index":1,"_ng_rollout_index":01}',
        b'{"_ng_task_index":1,"_ng_rollout_index":-1}}',
        b'{"m":"\xff","_ng_task_index":2,"_ng_rollout_index":1}',
        b"[]",
    ],
)
def test_damage_among_repeats_is_named(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    good = [b'{"_ng_task_index":1,"_ng_rollout_index":%d}' % at for at in range(3)]
    path.write_bytes(b"\n".join([*good, bad, *good]))

    with pytest.raises(RecordError, match=r"plan\.jsonl:4: "):
        read(path)


def test_a_last_line_ends_before_the_buffer() -> None:
    whole = [b'{"_ng_task_index":1,"_ng_rollout_index":%d}' % at for at in range(3)]
    text = b"\n".join([*whole, whole[0][:-4]])
    left = whole[0][-4:] + b"\n"  # by the block before
    block = Block(bytearray(text + left), 0, len(text), 0, is_open=True)

    assert TaskReader(_decode).read(block, lines_in(block)) is None


def _decode(line: memoryview) -> Planned:
    return msgspec.json.decode(line, type=Planned)
