from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.numerics.number_column import NumberColumn
from reward_profiling.profiling.gym.group_statistics import describe_groups
from reward_profiling.profiling.gym.metric_columns import (
    MetricColumn,
    MetricColumns,
    describe_column,
)

FLOATS = st.floats(-1e9, 1e9) | st.sampled_from([0.0, -0.0, 1e308, -1e308])
WHOLE = st.integers(-9, 2**62)


def one_column(*, whole: bool) -> MetricColumns:
    metric = MetricColumn("m", NumberColumn(), None, whole=whole)
    return MetricColumns((metric,), every_int=whole)


def one_by_one(groups: list[list[Any]], *, whole: bool) -> list[dict[str, Any]]:
    return [
        {
            f"{name}/m": value
            for name, value in describe_column(
                group, whole=whole, every_int=whole
            ).items()
        }
        for group in groups
    ]


@pytest.mark.parametrize("whole", [True, False])
@given(data=st.data())
def test_many_groups_equal_one_by_one(data: st.DataObject, *, whole: bool) -> None:
    value = WHOLE if whole else st.none() | FLOATS
    size = data.draw(st.sampled_from([1, 2, 7, 8, 9, 16, 17, 33, 128, 129, 140]))
    group = st.lists(value, min_size=size, max_size=size)
    ragged = st.lists(value, min_size=1, max_size=9)
    groups = data.draw(
        st.lists(group, min_size=1, max_size=3) | st.lists(ragged, min_size=1)
    )

    found = describe_groups(
        one_column(whole=whole),
        [[value for group in groups for value in group]],
        [len(group) for group in groups],
    )

    assert repr(found) == repr(one_by_one(groups, whole=whole))


def test_no_columns_means_no_statistics() -> None:
    assert describe_groups(MetricColumns((), every_int=True), [], [2, 3]) == [{}, {}]
