import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.on_disk.failures import Failures
from reward_profiling.profiling.rollout_table import RolloutStatus
from reward_profiling.reporting.overview import extremes, glances, num_given_up, tenths
from tests.insights.tables import Rollout, table_of

MISSING = Rollout(status=RolloutStatus.MISSING)
FAILED = Rollout(status=RolloutStatus.FAILED)


def test_only_scored_rollouts_show_a_task() -> None:
    first, second = glances(table_of([[1.0, 0.0, MISSING], [MISSING], [0.5]]), 0.5)

    assert (first.task_index, first.scored, first.planned) == (0, 2, 3)
    assert (first.mean_reward, first.pass_rate) == (0.5, 0.5)
    assert (second.task_index, second.first_row) == (2, 4)


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.3, 0.6, 0.7, 0.9, 1.0])
def test_a_tenth_includes_its_lower_bound(mean: float) -> None:
    (found,) = [tenth for tenth in tenths([mean]) if tenth.num_tasks]

    assert found.low == min(mean, 0.9)


@given(st.lists(st.floats(-1e6, 1e6)))
def test_every_task_is_in_one_tenth(means: list[float]) -> None:
    found = tenths(means)

    assert sum(tenth.num_tasks for tenth in found) == len(means)
    assert all(tenth.low <= tenth.high for tenth in found)


def test_equal_outlying_means_have_one_bar() -> None:
    assert [(t.low, t.high, t.num_tasks) for t in tenths([2.0, 2.0])] == [(2.0, 2.0, 2)]
    assert tenths([]) == []


@given(st.lists(st.floats(0, 1), max_size=9), st.integers(1, 5))
def test_no_task_is_most_and_least_solved(means: list[float], count: int) -> None:
    tasks = glances(table_of([[mean] for mean in means]), 1.0)

    most, least = extremes(tasks, count)

    indices = [task.task_index for task in [*most, *least]]
    assert len(set(indices)) == len(indices) == min(2 * count, len(means))
    assert all(a.mean_reward >= b.mean_reward for a in most for b in least)


def test_three_failures_or_a_final_one_end_it() -> None:
    table = table_of([[FAILED, FAILED, FAILED, 1.0]])
    failures = {
        (0, 0): Failures(3, "late"),
        (0, 1): Failures(1, "late", is_terminal=True),
        (0, 2): Failures(2, "late"),
        (0, 3): Failures(9, "late"),
    }

    assert num_given_up(table, failures) == 2
