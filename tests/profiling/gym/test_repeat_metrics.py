import math
from typing import Any

import pytest

from reward_profiling.errors import RecordError
from reward_profiling.profiling.gym.repeat_metrics import (
    across_repeats,
    confidence_interval,
    is_repeat_metric,
    label_entries,
)
from tests.profiling.columns_of_rows import metric_columns, ordered_records

Record = dict[str, Any]


def record(task: int, rollout: int | str, **fields: Any) -> Record:  # noqa: ANN401
    return {**fields, "_ng_task_index": task, "_ng_rollout_index": rollout}


def entries(*results: Record) -> list[dict[str, Any]]:
    records = ordered_records(results)
    rows = range(len(records))
    return label_entries("a", records, rows, metric_columns(records)).repeats


def test_one_repeat_compares_with_nothing() -> None:
    assert entries(record(0, 0, reward=1.0), record(1, 0, reward=0.0)) == []


def test_a_ragged_repeat_counts_its_gaps() -> None:
    found = entries(
        record(0, 0, reward=1.0), record(1, 0, reward=0.5), record(1, 1, reward=0.5)
    )

    assert [entry["missing_count"] for entry in found] == [0, 1]
    assert found[1]["std/reward"] == 0.0
    assert "ci_low_95/reward" not in found[1]


def test_a_repeat_without_a_value_has_no_key() -> None:
    found = entries(record(0, 0, m=2), record(0, 1, m=4), record(0, 2))

    assert "mean/m" not in found[2]
    across = across_repeats(found)["a"]
    assert across["mean_across_repeats/mean/m"] == 3.0
    assert across["std_across_repeats/mean/m"] == math.sqrt(2)


def test_repeat_columns_are_alphabetical() -> None:
    found = entries(record(0, 0, b=1, a=1), record(0, 1, b=1, a=1))[0]

    assert [key for key in found if key.startswith("mean/")] == ["mean/a", "mean/b"]


def test_text_repeats_are_written_as_numbers() -> None:
    found = entries(record(0, "10", reward=1.0), record(0, "9", reward=1.0))

    assert [entry["_ng_rollout_index"] for entry in found] == [10, 9]


def test_repeat_named_by_a_word_is_refused() -> None:
    with pytest.raises(RecordError, match="'first'"):
        entries(record(0, "first", reward=1.0), record(0, "next", reward=1.0))


@pytest.mark.parametrize(
    ("average", "error", "count", "expected"),
    [
        (1.0, 0.0, 1, None),
        (1.0, 0.0, 5, (1.0, 1.0)),
        (0.5, 0.5, 2, (-5.853102368087347, 6.853102368087347)),
    ],
)
def test_interval_needs_two_values(
    average: float, error: float, count: int, expected: tuple[float, float] | None
) -> None:
    assert confidence_interval(average, error, count) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean/reward", True),
        ("mean/", True),
        ("mean/p25/x", True),
        ("mean/x/max", False),
        ("mean/x_ci_lower", False),
        ("mean/x/std_err_across_runs", False),
        ("max/reward", False),
        ("p25/reward", False),
        ("sample_count", False),
        ("agent_ref", False),
        ("_ng_rollout_index", False),
        ("mean_across_repeats/x", False),
    ],
)
def test_only_estimates_span_repeats(name: str, *, expected: bool) -> None:
    assert is_repeat_metric(name) is expected


def test_an_overflowing_mean_is_left_out() -> None:
    name = {"name": "a"}
    found = across_repeats([
        {"agent_ref": name, "mean/m": math.nan},
        {"agent_ref": name, "mean/m": 2.0},
    ])  # fmt: skip

    assert found["a"]["mean_across_repeats/mean/m"] == 2.0
    assert "ci_low_95_across_repeats/mean/m" not in found["a"]
