from collections.abc import Mapping

import pytest

from reward_profiling.choosing.row_matching import (
    PlannedContents,
    SourceRow,
    contents_of,
    match_rows,
)
from reward_profiling.errors import DatasetError


def row(text: str, **more: object) -> dict[str, object]:
    return {"responses_create_params": {"input": text}, **more}


def source(*rows: Mapping[str, object]) -> list[SourceRow]:
    return [
        SourceRow(line, contents_of(one), one.get("_ng_task_index"))  # type: ignore[arg-type]
        for line, one in enumerate(rows, start=1)
    ]


def plan(*rows: Mapping[str, object]) -> PlannedContents:
    planned = PlannedContents()
    for index, one in enumerate(rows):
        planned.add(index, contents_of({**one, "_ng_task_index": index}))
    return planned


def test_rows_are_matched_by_content() -> None:
    planned = plan(row("a"), row("b"), row("c"))

    assert match_rows(source(row("c"), row("new"), row("a")), planned, "t") == [
        2, None, 0,
    ]  # fmt: skip


def test_planned_changes_do_not_hide_a_row() -> None:
    overlaid = {"input": "a", "temperature": 1.0}
    planned = plan(
        {"responses_create_params": overlaid, "agent_ref": {"name": "other"}, "x": 1},
        row("b", x=1),
    )

    assert match_rows(source(row("b", x=1), row("a", x=1)), planned, "t") == [1, 0]


def test_rows_differing_by_overlay_keep_order() -> None:
    planned = plan(row("a"), row("a"))
    first = {"responses_create_params": {"input": "a", "temperature": 0}}
    second = {"responses_create_params": {"input": "a", "temperature": 1}}

    assert match_rows(source(first, second), planned, "t") == [0, 1]
    with pytest.raises(DatasetError, match="t:1: tasks 0, 1 of the plan say the same"):
        match_rows(source(second), planned, "t")


def test_a_rows_index_needs_matching_content() -> None:
    planned = plan(row("a"), row("b"))

    assert match_rows(source(row("b", _ng_task_index=1)), planned, "t") == [1]
    with pytest.raises(DatasetError, match="says something else than task 0"):
        match_rows(source(row("b", _ng_task_index=0)), planned, "t")
