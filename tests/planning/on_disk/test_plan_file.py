"""The plan's own reader: row by row, by place, for labels, and written whole."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.planning.on_disk.plan_file import (
    PlanRow,
    extend_plan,
    plan_rows,
    read_labels,
    read_plan,
    replace_plan,
    task_label,
)

LINES = [
    b'{"_ng_task_index":0,"agent_ref":{"name":"a"},"_ng_rollout_index":0}',
    b'{"_ng_task_index":"t","_ng_environment_server":"ES","_ng_rollout_index":3}',
]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Give a plan of two rows."""
    path = tmp_path / "r_materialized_inputs.jsonl"
    replace_plan(path, LINES)
    return path


def test_rows_come_in_order_with_their_keys(plan: Path) -> None:
    rows = list(read_plan(plan))

    assert [row.key for row in rows] == [(0, 0), ("t", 3)]
    assert [row.task_index for row in rows] == [0, "t"]
    assert [row.agent for row in rows] == ["a", None]
    assert [row.server for row in rows] == [None, "ES"]
    assert [row.text for row in rows] == LINES


@pytest.mark.parametrize("name", ["key", "task_index", "agent"])
def test_unusable_values_are_told_on_request(tmp_path: Path, name: str) -> None:
    path = tmp_path / "plan.jsonl"
    path.write_bytes(b'\n{"_ng_task_index":1.5,"agent_ref":"a"}\n')
    (row,) = read_plan(path)

    with pytest.raises(RecordError, match=r"plan\.jsonl:2: "):
        getattr(row, name)


@pytest.mark.parametrize(
    ("row", "agent", "run_key"),
    [
        ({"agent_ref": {"name": "a"}}, "a", "a"),
        ({"agent_ref": {"name": "a"}, "_ng_environment_server": "e"}, "a", "e"),
        ({"agent_ref": {"name": "a"}, "_ng_environment_server": None}, "a", "a"),
        ({"_ng_environment_server": "e"}, None, "e"),
        ({"agent_ref": None}, None, None),
        ({"agent_ref": {}}, None, None),
        ({}, None, None),
    ],
)
def test_a_row_is_keyed_by_server_or_agent(
    row: dict[str, Any], agent: str | None, run_key: str | None
) -> None:
    found = PlanRow(Path("plan.jsonl"), 1, b"", row)

    assert (found.agent, found.run_key) == (agent, run_key)


def test_a_row_is_read_at_its_place(plan: Path) -> None:
    with plan_rows(plan) as row_at:
        assert row_at(len(LINES[0]) + 1) == orjson.loads(LINES[1])
        assert row_at(0) == orjson.loads(LINES[0])
        with pytest.raises(RecordError, match=r"inputs\.jsonl:1: is not JSON"):
            row_at(5)


def test_a_plan_grows_at_its_end(plan: Path) -> None:
    extend_plan(plan, [b"{}"])

    assert plan.read_bytes() == b"\n".join([*LINES, b"{}", b""])
    with pytest.raises(ConfigError, match="does not exist"):
        extend_plan(plan.with_name("none.jsonl"), [b"{}"])


def test_failing_lines_change_no_plan(plan: Path) -> None:
    before = plan.read_bytes()

    with pytest.raises(ZeroDivisionError):
        replace_plan(plan, (b"%d" % (1 // left) for left in (1, 0)))

    assert plan.read_bytes() == before
    assert [path.name for path in plan.parent.iterdir()] == [plan.name]


@pytest.mark.parametrize(
    ("params", "label"),
    [
        ({"input": " a \n b "}, "a b"),
        ({"input": [{"content": "first"}, {"content": "last"}]}, "last"),
        ({"input": ["said"]}, "said"),
        ({"input": [{"content": [{"text": "a"}, {"type": "image"}]}]}, "a"),
        ({"input": "x" * 81}, "x" * 79 + "…"),
        ({"input": "x" * 80}, "x" * 80),
        ({"input": []}, None),
        ({"input": " "}, None),
        ({}, None),
        (None, None),
    ],
)
def test_its_last_message_labels_a_task(
    params: dict[str, Any] | None, label: str | None
) -> None:
    assert task_label(params) == label


def test_labels_skip_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    rows = [
        b'{"_ng_task_index":0,"responses_create_params":{"input":"a"}}',
        b'{"_ng_task_index":0,"responses_create_params":{"input":"b"}}',
        b"{bad",
        b'{"_ng_task_index":1}',
        b'{"_ng_task_index":"t","responses_create_params":{"input":"c"}}',
    ]
    path.write_bytes(b"\n".join(rows))

    assert read_labels(path) == {0: "a", "t": "c"}
