import math
from typing import Any

import pytest

from reward_profiling.errors import RecordError
from reward_profiling.profiling.gym.metric_columns import MetricColumns, describe_column
from tests.profiling.columns_of_rows import metric_columns, record_columns


def found_in(*results: dict[str, Any]) -> MetricColumns:
    keys = ({"_ng_task_index": 0, "_ng_rollout_index": n} for n in range(len(results)))
    rows = [{**r, **k} for r, k in zip(results, keys, strict=True)]
    return metric_columns(record_columns(rows))


@pytest.mark.parametrize(
    ("results", "names", "whole", "every_int"),
    [
        ([], (), set(), True),
        ([{"a": 1}, {"a": 2}], ("a",), {"a"}, True),
        ([{"a": 1}, {"a": True}], ("a",), {"a"}, True),
        ([{"a": 1}, {"a": 2.0}], ("a",), set(), False),
        ([{"a": 1}, {"b": 2}], ("a", "b"), set(), False),
        ([{"a": 1, "b": 2.0}, {"b": 1, "a": 1}], ("a", "b"), {"a"}, False),
        ([{"a": 2**63, "b": 1}], ("a", "b"), {"a", "b"}, False),
        ([{"a": 2**63, "b": 2**64 - 1}], ("a", "b"), {"a", "b"}, True),
    ],
)
def test_columns_come_in_first_seen_order(
    results: list[dict[str, Any]],
    names: tuple[str, ...],
    whole: set[str],
    *,
    every_int: bool,
) -> None:
    found = found_in(*results)

    assert (found.names, found.whole) == (names, frozenset(whole))
    assert found.every_int is every_int


def test_integers_past_64_bits_are_refused() -> None:
    with pytest.raises(RecordError, match="'a' span from -1 to 9223372036854775808"):
        found_in({"a": -1}, {"a": 2**63})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], {}),
        ([None, None], {}),
        ([None, 2], {"mean": 2.0, "max": 2.0, "min": 2.0, "median": 2.0}),
        ([4], {"mean": 4.0, "max": 4.0, "min": 4.0, "median": 4.0, "std": 0.0}),
    ],
)
def test_a_column_of_few_values_is_defined(
    values: list[int | None], expected: dict[str, float]
) -> None:
    assert describe_column(values, whole=False, every_int=False) == expected


def test_what_is_not_a_number_is_left_out() -> None:
    endless = [1e308, 1e308, -1e308, -1e308] * 4

    found = describe_column(endless, whole=False, every_int=False)

    assert (found["max"], found["min"], found["median"]) == (1e308, -1e308, 0.0)
    assert not any(math.isnan(value) for value in found.values())
