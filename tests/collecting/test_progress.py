import math
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.progress import (
    Progress,
    RunningMean,
    is_reward,
    longest_residual,
)

rewards = st.floats(-1e6, 1e6)
ages = st.lists(st.floats(0, 1e4), max_size=10)


def collected(*values: object, masked: bool = False) -> Progress:
    progress = Progress(planned=len(values))
    for moment, value in enumerate(values, start=1):
        progress.add_record(value, agent="a", masked=masked, now=float(moment))
    return progress


@given(st.lists(rewards, min_size=1, max_size=60))
def test_the_running_mean_is_the_mean(values: list[float]) -> None:
    running = collected(*values).rewards

    assert running.count == len(values)
    assert running.mean == pytest.approx(fmean(values), rel=1e-9, abs=1e-9)


@given(st.lists(rewards, min_size=2, max_size=60))
def test_the_running_error_is_exact(values: list[float]) -> None:
    expected = stdev(values) / math.sqrt(len(values))

    assert collected(*values).rewards.standard_error == pytest.approx(
        expected, rel=1e-6, abs=1e-6
    )


def test_no_mean_of_none_and_no_error_of_one() -> None:
    assert (RunningMean().mean, RunningMean().standard_error) == (None, None)
    assert collected(0.5).rewards.standard_error is None


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        (1, True), (0.5, True), (-2.0, True), (True, True), (1e308, True),
        (None, False), ("1", False), (math.nan, False), (math.inf, False),
        ([1], False), ({}, False), (10**400, False),
    ],
)  # fmt: skip
def test_a_reward_is_a_finite_number(value: object, counts: bool) -> None:  # noqa: FBT001
    assert is_reward(value) == counts
    assert collected(value).rewards.count == counts


def test_a_masked_record_is_not_averaged() -> None:
    progress = collected(1.0, masked=True)

    assert (progress.collected, progress.rewards.mean) == (1, None)


def test_rewards_are_kept_apart_by_agent() -> None:
    progress = collected(0.0, 1.0)
    progress.add_record(1.0, agent="b", masked=False, now=9.0)

    assert progress.agent("a").rewards.mean == 0.5
    assert progress.agent("b").rewards.mean == 1.0
    assert progress.rewards.mean == pytest.approx(2 / 3)


def test_done_and_left_make_up_the_plan() -> None:
    progress = Progress(planned=10, found=3, given_up=1)
    progress.add_record(1.0, agent="a", masked=False, now=1.0)
    progress.add_failure("judge_failed", agent="a", now=2.0)

    assert (progress.done, progress.left) == (6, 4)
    assert progress.failures == {"judge_failed": 1}
    assert progress.agent("a").done == 2


def test_the_rate_first_covers_the_whole_run() -> None:
    progress = Progress(planned=10, started=0.0)
    assert progress.rate(5.0) is None

    for now in (1.0, 2.0):
        progress.add_record(1.0, agent="a", masked=False, now=now)

    assert progress.rate(4.0) == 0.5


def test_the_rate_forgets_a_slow_start() -> None:
    progress = Progress(planned=1000, started=0.0)
    for index in range(300):
        progress.add_record(1.0, agent="a", masked=False, now=1000.0 + index)

    assert progress.rate(1300.0) == pytest.approx(1.0, rel=0.01)


def test_without_time_there_is_no_rate() -> None:
    progress = Progress(planned=2, started=1.0)
    progress.add_record(1.0, agent="a", masked=False, now=1.0)

    assert progress.rate(1.0) is None
    assert progress.seconds_left(1.0) is None


def test_the_time_left_counts_unstarted_ones() -> None:
    progress = Progress(planned=10, started=0.0)
    progress.add_record(1.0, agent="a", masked=False, now=2.0)

    assert progress.seconds_left(2.0) == pytest.approx(18.0)


def test_the_slowest_can_set_the_time_left() -> None:
    progress = Progress(planned=2, started=0.0)
    progress.add_record(1.0, agent="a", masked=False, now=1.0)
    progress.add_duration(1.0, "task 0 repeat 0")
    progress.in_flight[0] = 0.0

    assert progress.seconds_left(60.0) == pytest.approx(60.0)


def test_a_finished_plan_has_nothing_left() -> None:
    assert collected(1.0).seconds_left(2.0) is None


def test_the_slowest_rollouts_stay_in_order() -> None:
    progress = Progress(planned=9)
    for seconds in (3, 9, 1, 7, 5, 8, 2):
        progress.add_duration(float(seconds), f"r{seconds}")

    assert [name for _, name in progress.slowest] == ["r9", "r8", "r7", "r5", "r3"]


def test_a_rest_is_the_mean_of_longer_ones() -> None:
    assert longest_residual([2.0], [1.0, 4.0, 8.0]) == 4.0
    assert longest_residual([2.0, 10.0], [1.0, 4.0, 8.0]) == 10.0
    assert longest_residual([], [1.0]) == 0.0


@given(ages, ages)
def test_a_rest_is_never_negative(running: list[float], seen: list[float]) -> None:
    rest = longest_residual(running, seen)

    assert 0 <= rest <= max([*running, *seen], default=0.0) + 1e-6
