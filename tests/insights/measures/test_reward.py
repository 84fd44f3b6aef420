import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.insights.tables import (
    FAILED,
    insights,
)

LARGE = st.sampled_from([1.7e308, -1.7e308, 1e308, 5e-324, sys.float_info.max])


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.lists(FINITE | LARGE, min_size=1, max_size=4), min_size=1))
def test_rewards_of_any_size_have_a_mean(
    tasks: list[list[float]],
) -> None:
    reward = insights(*tasks).run.reward

    rewards = [reward for task in tasks for reward in task]
    assert reward.micro_mean is not None
    assert reward.macro_mean is not None
    bounds = min(rewards), max(rewards)
    for mean in (reward.micro_mean, reward.macro_mean):
        assert bounds[0] <= mean <= bounds[1] or mean == pytest.approx(bounds[0])


def test_failures_as_zero_join_the_mean() -> None:
    found = insights([*[1.0] * 4, *[0.0] * 4, FAILED, FAILED])

    assert (found.run.reward.macro_mean, found.run.reward.num_rollouts) == (0.5, 8)
    assert found.run.reward.mean_failures_as_zero == 0.4
    assert not found.reading.failures_as_zero
    assert found.run.coverage.failures_by_class == {"agent_run_error": 2}


def test_two_tasks_have_only_a_rerun_error() -> None:
    reward = insights([1.0, 0.0], [0.0, 1.0]).run.reward

    assert (reward.standard_error, reward.interval) == (0.0, None)
    assert reward.caution is not None
    assert reward.rerun_standard_error == pytest.approx(0.3536, abs=5e-5)
