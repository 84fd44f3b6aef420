import math
import sys
from dataclasses import astuple
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.numerics.uncertainty import (
    Interval,
    caution,
    clopper_pearson,
    clustered_error,
    counted_error,
    counted_mean,
    mean_interval,
    mean_of,
    rerun_error,
    span_of,
    standard_error,
    std,
    variance,
    wilson,
    zero_upper_bound,
)

REWARDS = st.lists(st.floats(-100, 100), min_size=2, max_size=30)


@pytest.mark.parametrize(
    ("c", "deviation", "by_wilson", "exact"),
    [
        (0, 0, (0, 0.3244), (0, 0.3694)),
        (1, 0.353553, (0.0224, 0.4709), (0.0032, 0.5265)),
        (2, 0.462910, (0.0715, 0.5907), (0.0319, 0.6509)),
        (3, 0.517549, (0.1368, 0.6943), (0.0852, 0.7551)),
        (4, 0.534522, (0.2152, 0.7848), (0.1570, 0.8430)),
        (5, 0.517549, (0.3057, 0.8632), (0.2449, 0.9148)),
        (6, 0.462910, (0.4093, 0.9285), (0.3491, 0.9681)),
        (7, 0.353553, (0.5291, 0.9776), (0.4735, 0.9968)),
        (8, 0, (0.6756, 1), (0.6306, 1)),
    ],
)
def test_eight_rollouts_give_known_intervals(
    c: int,
    deviation: float,
    by_wilson: tuple[float, float],
    exact: tuple[float, float],
) -> None:
    assert std([1.0] * c + [0.0] * (8 - c)) == pytest.approx(deviation, abs=5e-7)
    assert astuple(wilson(c, 8)) == pytest.approx(by_wilson, abs=5e-5)
    assert astuple(clopper_pearson(c, 8)) == pytest.approx(exact, abs=5e-5)


def test_the_ends_of_a_rate_are_exact() -> None:
    assert wilson(0, 8).low == 0.0
    assert wilson(8, 8).high == 1.0
    assert clopper_pearson(0, 3).low == 0.0
    assert clopper_pearson(3, 3).high == 1.0


@pytest.mark.parametrize(
    ("rate", "count", "error"),
    [
        (0.655, 5000, 0.672), (0.630, 5000, 0.683), (0.836, 164, 2.891),
        (0.867, 164, 2.652), (0.753, 2500, 0.863), (0.780, 2500, 0.828),
    ],
)  # fmt: skip
def test_the_papers_errors_come_out(rate: float, count: int, error: float) -> None:
    # In thousandths, and by n as the paper has it instead of n - 1.
    found = counted_error([(1.0, round(1000 * rate)), (0.0, 1000 - round(1000 * rate))])

    assert found is not None
    assert 100 * found * math.sqrt(999 / count) == pytest.approx(error, abs=6e-4)


def test_variance_survives_a_large_mean() -> None:
    values = [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]

    assert variance(values) == 30.0
    assert std([v * 1e150 for v in (1.0, 2.0, 3.0)]) == pytest.approx(1e150)
    assert std([1e308, -1e308]) == pytest.approx(math.sqrt(2) * 1e308, rel=1e-9)


def test_a_sum_past_any_float_has_a_mean() -> None:
    assert mean_of([1.5e308, 1.5e308]) == pytest.approx(1.5e308)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("count", [2, 3, 5, 7, 11, 49, 1_000])
def test_the_largest_floats_have_their_mean(count: int, sign: int) -> None:
    largest = sign * sys.float_info.max

    assert mean_of([largest] * count) == largest
    assert counted_mean([(largest, 1), (largest, count)]) == largest


def test_one_value_has_no_spread_or_error() -> None:
    assert (std([0.5]), variance([0.5]), standard_error([0.5])) == (
        None,
        None,
        None,
    )
    assert clustered_error([1.0], [3]) is None
    assert counted_error([(0.5, 1)]) is None


@given(st.lists(REWARDS, min_size=2, max_size=8), st.integers(1, 5))
def test_equal_repeats_cluster_as_task_means(
    tasks: list[list[float]], count: int
) -> None:
    tasks = [(rewards * count)[:count] for rewards in tasks]
    sums = [math.fsum(rewards) for rewards in tasks]

    clustered = clustered_error(sums, [count] * len(tasks))

    assert clustered == pytest.approx(
        standard_error([total / count for total in sums]), rel=1e-6, abs=1e-9
    )


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 9))))
def test_counted_values_equal_listed_ones(
    pairs: list[tuple[float, int]],
) -> None:
    listed = [value for value, count in pairs for _ in range(count)]

    if listed:
        assert counted_mean(pairs) == pytest.approx(mean_of(listed))
        assert counted_error(pairs) == pytest.approx(standard_error(listed), abs=1e-12)


@given(REWARDS, st.randoms(use_true_random=False))
def test_order_changes_no_bit(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert (mean_of(shuffled), std(shuffled)) == (
        mean_of(values),
        std(values),
    )


@given(REWARDS, st.integers(-40, 40))
def test_scaled_rewards_scale_their_spread(values: list[float], power: int) -> None:
    scaled = [value * 2.0**power for value in values]
    spread = std(values)

    assert spread is not None
    assert std(scaled) == pytest.approx(spread * 2.0**power, rel=1e-9)


def test_mirrored_tasks_have_no_spread() -> None:
    tasks = [[1.0, 0.0], [0.0, 1.0]]
    variances = [variance(rewards) or 0.0 for rewards in tasks]

    error, count = rerun_error(variances, [2, 2])

    assert standard_error([mean_of(rewards) for rewards in tasks]) == 0.0
    assert error == pytest.approx(0.3536, abs=5e-5)
    assert count == 2
    assert rerun_error([], []) == (None, 0)


@pytest.mark.parametrize(
    ("error", "count", "word"),
    [
        (None, 0, "no task has a reward"),
        (None, 1, "one task: too few"),
        (0.1, 4, "4 tasks: too few"),
        (0.0, 50, "all 50 tasks have the same mean"),
        (0.1, 5, None),
    ],
)
def test_a_mean_without_an_interval_says_why(
    error: float | None, count: int, word: str | None
) -> None:
    said = caution(error, count)

    assert said is None if word is None else word in str(said)


def test_an_interval_needs_tasks_and_span() -> None:
    assert mean_interval([0.0, 1.0, 0.0, 1.0], Interval(0, 1)) is None
    assert mean_interval([1.0] * 40, Interval(1, 1)) is None


def test_equal_means_leave_room_for_doubt() -> None:
    found = mean_interval([0.0] * 8, Interval(0, 1))

    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.0, 0.3262), abs=5e-5)


def test_many_tasks_give_students_interval() -> None:
    means = [0.0, 1.0] * 500
    error = standard_error(means) or 0.0

    found = mean_interval(means, Interval(0, 1))

    assert found is not None
    assert astuple(found) == pytest.approx(
        (0.5 - 1.9623 * error, 0.5 + 1.9623 * error), abs=1e-4
    )


@pytest.mark.parametrize(
    ("low", "high", "threshold", "span"),
    [
        (0, 1, 1, (0, 1)), (0, 0, 1, (0, 1)), (1, 1, 1, (0, 1)), (-1, 1, 0, (-1, 1)),
        (0.2, 0.6, 1, (0.2, 1)), (-2, -2, -2, (-2, 0)), (0, 0, 0, (0, 0)),
    ],
)  # fmt: skip
def test_the_span_covers_seen_and_passing(
    low: float, high: float, threshold: float, span: tuple[float, float]
) -> None:
    assert span_of(low, high, threshold) == Interval(*span)


@pytest.mark.parametrize("ability", [(0.5, 0.5), (0.3, 1.2), (0.2, 2.0)])
@pytest.mark.parametrize("tasks", [5, 12, 40])
def test_an_interval_holds_as_it_claims(
    ability: tuple[float, float], tasks: int
) -> None:
    random = Random(7)  # noqa: S311 - repeatable on purpose
    truth, held = ability[0] / sum(ability), 0
    for _ in range(400):
        rates = [random.betavariate(*ability) for _ in range(tasks)]
        means = [sum(random.random() < rate for _ in range(8)) / 8 for rate in rates]
        found = mean_interval(means, Interval(0, 1))
        assert found is not None
        held += found.low <= truth <= found.high

    # Three standard errors of the simulation below 95 %.
    assert held / 400 >= 0.917


@pytest.mark.parametrize(("n", "bound"), [(8, 0.312), (16, 0.171), (64, 0.0457)])
def test_no_pass_leaves_a_rate_possible(n: int, bound: float) -> None:
    assert zero_upper_bound(n) == pytest.approx(bound, abs=5e-4)
