from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.errors import (
    DuplicateRolloutError,
    MissingRolloutsError,
    UnknownRolloutError,
)
from reward_profiling.planning.row_members import shown_keys
from reward_profiling.profiling.matching import Completion, completion_of, match
from tests.profiling.columns_of_rows import PlannedRow, ordered_records, plan_columns

Keys = list[tuple[Any, Any]]


def rows(*keys: tuple[Any, Any]) -> list[PlannedRow]:
    return [PlannedRow(key, "a", "a", place=0) for key in keys]


def completion(
    rows: list[PlannedRow], collected: Keys, *, allow_partial: bool
) -> Completion:
    plan = plan_columns(rows)
    records = ordered_records(
        [
            {"_ng_task_index": task, "_ng_rollout_index": rollout}
            for task, rollout in collected
        ]
    )
    matching = match(plan, records, allow_partial=allow_partial)
    return completion_of(plan, records, matching)


@pytest.mark.parametrize(
    ("planned", "collected", "error"),
    [
        ([(0, 0), (0, 0)], [(0, 0)], DuplicateRolloutError),
        ([(0, 0)], [(0, 0), (0, 0)], DuplicateRolloutError),
        ([(0, 0)], [(0, 0), (0, 1)], UnknownRolloutError),
        ([(0, 0)], [(1, 0)], UnknownRolloutError),
        ([(0, 0)], [("0", 0)], UnknownRolloutError),
    ],
)
@pytest.mark.parametrize("allow_partial", [True, False])
def test_contradictory_files_are_refused(
    planned: Keys, collected: Keys, error: type[Exception], *, allow_partial: bool
) -> None:
    with pytest.raises(error, match=r"task|\(0, 0\)"):
        completion(rows(*planned), collected, allow_partial=allow_partial)


def test_only_partial_runs_may_lack_rollouts() -> None:
    planned, collected = rows((0, 0), (0, 1)), [(0, 1)]

    with pytest.raises(MissingRolloutsError, match=r"1 of 2 .* task 0 repeat 0"):
        completion(planned, collected, allow_partial=False)

    assert completion(planned, collected, allow_partial=True).percent == 50.0


def test_empty_plan_is_complete() -> None:
    found = completion([], [], allow_partial=False)

    assert (found.percent, found.missing, found.total_input_rows) == (100.0, 0, 0)


def test_input_rows_pair_tasks_with_run_keys() -> None:
    planned = [
        PlannedRow((0, 0), "a", "a", 0),
        PlannedRow((0, 1), "b", "b", 0),
        PlannedRow((1, 0), "a", "a", 0),
        PlannedRow((1, 1), "a", "a", 0),
    ]

    found = completion(planned, [(0, 0), (1, 1)], allow_partial=True)

    assert (found.complete_input_rows, found.partial_input_rows) == (1, 1)
    assert (found.missing_input_rows, found.total_input_rows) == (1, 3)


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.randoms())
def test_counts_always_add_up(
    keys: set[tuple[int, int]],
    random: Any,  # noqa: ANN401
) -> None:
    collected = [key for key in keys if random.random() < 0.5]

    found = completion(rows(*keys), collected, allow_partial=True)

    parts = (found.complete_input_rows, found.partial_input_rows)
    assert sum(parts) + found.missing_input_rows == found.total_input_rows
    assert found.collected + found.missing == found.planned == len(keys)


def test_ten_keys_are_shown_with_text_last() -> None:
    assert shown_keys([("x", 0), (2, 1), (2, 0)]) == (
        "task 2 repeat 0, task 2 repeat 1, task x repeat 0"
    )
    assert shown_keys([(n, 0) for n in range(13)]).endswith(
        "task 9 repeat 0 and 3 more"
    )
