from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.insights.measures.passing import (
    ks,
    majority,
    pass_at_k,
    pass_curve,
    pass_hat_k,
)
from reward_profiling.profiling.passes import is_pass

TRIES = (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("c", "at", "hat"),
    [
        (0, (0, 0, 0, 0), (0, 0, 0, 0)),
        (1, (0.125, 0.25, 0.5, 1), (0.125, 0, 0, 0)),
        (2, (0.25, 0.464286, 0.785714, 1), (0.25, 0.035714, 0, 0)),
        (3, (0.375, 0.642857, 0.928571, 1), (0.375, 0.107143, 0, 0)),
        (4, (0.5, 0.785714, 0.985714, 1), (0.5, 0.214286, 0.014286, 0)),
        (5, (0.625, 0.892857, 1, 1), (0.625, 0.357143, 0.071429, 0)),
        (6, (0.75, 0.964286, 1, 1), (0.75, 0.535714, 0.214286, 0)),
        (7, (0.875, 1, 1, 1), (0.875, 0.75, 0.5, 0)),
        (8, (1, 1, 1, 1), (1, 1, 1, 1)),
    ],
)
def test_eight_rollouts_give_known_chances(
    c: int, at: tuple[float, ...], hat: tuple[float, ...]
) -> None:
    assert [pass_at_k(8, c, k) for k in TRIES] == pytest.approx(at, abs=5e-7)
    assert [pass_hat_k(8, c, k) for k in TRIES] == pytest.approx(hat, abs=5e-7)


def test_larger_tables_hold_too() -> None:
    assert pass_at_k(200, 1, 100) == 0.5
    assert pass_at_k(10, 3, 5) == pytest.approx(0.916667, abs=5e-7)
    assert pass_at_k(20_000, 1, 10_000) == 0.5


def test_too_many_tries_have_no_chance() -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="8 rollouts cannot estimate 9 tries"):
            estimate(8, 3, 9)


@given(st.integers(1, 7), st.data())
def test_both_chances_count_all_choices(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(combinations([True] * c + [False] * (n - c), k))

    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_each_curve_point_has_its_task_count() -> None:
    curve = pass_curve({(8, 2): 3, (4, 4): 1, (1, 0): 1})

    assert [(point.k, point.num_tasks) for point in curve] == [
        (1, 5), (2, 4), (3, 4), (4, 4), (5, 3), (6, 3), (7, 3), (8, 3),
    ]  # fmt: skip
    assert curve[0].pass_at_k == pytest.approx((3 * 0.25 + 1) / 5)
    assert curve[3].pass_at_k == pytest.approx((3 * 0.7857142857 + 1) / 4)
    assert curve[7].pass_at_k == 1
    assert curve[7].pass_at_k_error == 0.0


def test_one_task_has_a_curve_without_errors() -> None:
    (point,) = pass_curve({(1, 1): 1})

    assert (point.pass_at_k, point.pass_at_k_error) == (1.0, None)
    assert pass_curve({}) == ()


def test_a_long_curve_shows_powers_of_two() -> None:
    assert list(ks(16)) == list(range(1, 17))
    assert list(ks(159)) == [*range(1, 17), 32, 64, 128, 159]


@pytest.mark.parametrize("rewards", [(0.5, 1.0), (1.0, 0.5)])
def test_partial_rewards_pass_by_a_threshold(
    rewards: tuple[float, float],
) -> None:
    passed = sum(is_pass(reward, 1.0) for reward in rewards)

    assert [pass_at_k(2, passed, k) for k in (1, 2)] == [0.5, 1.0]


def test_the_answer_that_most_give_decides() -> None:
    found = majority([
        [(1, True), (1, True), (2, False)],
        [(3, False), (3, False), (4, True)],
        [],
    ])  # fmt: skip

    assert found is not None
    assert (found.pass_rate, found.num_tasks, found.num_rollouts) == (0.5, 2, 6)
    assert (found.num_tied, found.num_split) == (0, 0)


def test_tied_answers_count_by_their_share() -> None:
    found = majority([[(1, True), (2, False), (3, False)]])

    assert found is not None
    assert found.pass_rate == pytest.approx(1 / 3)
    assert found.num_tied == 1


def test_an_answer_of_mixed_results_is_told() -> None:
    found = majority([[(1, True), (1, True), (1, False)], [(2, True), (2, False)]])

    assert found is not None
    assert (found.pass_rate, found.num_split) == (0.75, 2)


def test_no_answers_have_no_majority() -> None:
    assert majority([[], []]) is None
