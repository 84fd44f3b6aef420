import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.numerics import moments

FINITE = st.floats(-1e12, 1e12)


def eight_lanes_by_hand(values: list[float]) -> float:
    whole = len(values) - len(values) % 8
    lanes = [0.0] * 8
    for index in range(whole):
        lanes[index % 8] += values[index]
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for value in values[whole:]:
        total += value
    return total


@settings(deadline=None)
@given(st.lists(FINITE, max_size=600))
def test_a_pairwise_sum_is_nearly_exact(values: list[float]) -> None:
    exact = math.fsum(values)
    size = math.fsum(map(abs, values))

    assert abs(moments.pairwise_sum(values) - exact) <= 1e-13 * size + 1e-300


@given(st.lists(FINITE, max_size=7))
def test_few_values_are_added_left_to_right(values: list[float]) -> None:
    total = 0.0
    for value in values:
        total += value

    assert moments.pairwise_sum(values) == total


@settings(deadline=None)
@given(st.lists(FINITE, min_size=8, max_size=128))
def test_up_to_128_values_use_eight_lanes(values: list[float]) -> None:
    assert moments.pairwise_sum(values) == eight_lanes_by_hand(values)


@pytest.mark.parametrize(
    ("count", "half"), [(129, 64), (130, 64), (136, 64), (144, 72), (256, 128)]
)
def test_a_split_is_at_a_multiple_of_eight(count: int, half: int) -> None:
    values = [1 / (1 + index % 13) for index in range(count)]
    left, right = values[:half], values[half:]

    expected = eight_lanes_by_hand(left) + eight_lanes_by_hand(right)

    assert moments.pairwise_sum(values) == expected


def by_halves(values: list[float]) -> float:
    if len(values) <= 128:
        return eight_lanes_by_hand(values)
    half = len(values) // 2 // 8 * 8
    return by_halves(values[:half]) + by_halves(values[half:])


@pytest.mark.parametrize("count", [257, 300, 1_000, 1_032, 2_056, 3_125, 4_097, 50_000])
def test_many_values_are_split_repeatedly(count: int) -> None:
    values = [1 / (1 + index * 7919 % 1009) for index in range(count)]

    assert moments.pairwise_sum(values) == by_halves(values)


@settings(deadline=None)
@given(st.integers(129, 9_000), st.randoms(use_true_random=False))
def test_values_are_split_down_to_128(count: int, random: Random) -> None:
    values = [random.randrange(-(10**9), 10**9) / 7 for _ in range(count)]

    assert moments.pairwise_sum(values) == by_halves(values)


def test_addition_order_decides_the_last_bit() -> None:
    left_to_right = 0.0
    for value in [0.1] * 8:
        left_to_right += value

    assert moments.pairwise_sum([0.1] * 8) == 0.8
    assert left_to_right == 0.7999999999999999


@pytest.mark.parametrize("count", [0, 1, 7, 8, 128, 129])
def test_negative_zeros_sum_to_positive_zero(count: int) -> None:
    assert math.copysign(1, moments.pairwise_sum([-0.0] * count)) == 1


def test_whole_numbers_fill_buffers_of_8192() -> None:
    values = [2**60 - 7 * index for index in range(8200)]

    expected = moments.pairwise_sum(values[:8192]) + moments.pairwise_sum(values[8192:])

    assert moments.buffered_sum(values) == expected
    assert moments.mean(values, whole=True) == expected / 8200


def test_mean_leaves_missing_values_out() -> None:
    assert moments.mean([None, 1.0, None, 2.0]) == 1.5


@pytest.mark.parametrize("values", [[], [None], [None, None]])
def test_nothing_has_no_mean(values: list[float | None]) -> None:
    assert moments.mean(values) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([None], None),
        ([3.0], 0.0),
        ([3.0, None], None),
        ([3.0, 3.0], 0.0),
        ([1.0, 3.0], math.sqrt(2)),
        ([1.0, None, 3.0], math.sqrt(2)),
    ],
)
def test_std_is_defined_in_degenerate_cases(
    values: list[float | None], expected: float | None
) -> None:
    assert moments.std(values) == expected


@pytest.mark.parametrize(
    ("ordered", "expected"),
    [
        ([1], 1.0),
        ([1, 2], 1.5),
        ([1, 2, 9], 2.0),
        ([-0.0], 0.0),
        ([2**53 + 1, 2**53 + 3], float(2**53 + 2)),
    ],
)
def test_median_is_a_float(ordered: list[float], expected: float) -> None:
    found = moments.median(ordered)

    assert isinstance(found, float)
    assert found == expected
    assert math.copysign(1, found) == math.copysign(1, expected)


def test_the_least_is_the_last_equal_zero() -> None:
    assert math.copysign(1, moments.least([0.0, -0.0, 1.0])) == -1
    assert math.copysign(1, moments.least([-0.0, 0.0, 1.0])) == 1


@pytest.mark.parametrize(
    ("ordered", "share", "expected"),
    [
        ([5.0], 0.25, 5.0),
        ([-0.0], 0.75, -0.0),
        ([1.0, 2.0], 0.25, 1.25),
        ([1.0, 2.0], 0.75, 1.75),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
        ([0.1, 0.7], 0.75, 0.7 - (0.7 - 0.1) * 0.25),
    ],
)
def test_interpolation_starts_at_the_near_end(
    ordered: list[float], share: float, expected: float
) -> None:
    found = moments.quantile(ordered, share)

    assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))


def test_whole_distances_wrap_at_64_bits() -> None:
    ordered = [-(2**63), 2**63 - 1]

    assert moments.quantile(ordered, 0.25) == -9.223372036854775808e18 - 0.25


@settings(deadline=None)
@given(st.lists(FINITE, min_size=1), st.floats(0, 1))
def test_quantile_lies_between_its_ends(values: list[float], share: float) -> None:
    ordered = sorted(values)
    room = 1e-9 * (1 + abs(ordered[0]) + abs(ordered[-1]))

    found = moments.quantile(ordered, share)

    assert ordered[0] - room <= found <= ordered[-1] + room
