import pytest

from reward_profiling.insights.lengths import correlation, pearson, ranks, spearman

TOLERANCE = 1e-6
TOKENS = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
REWARDS = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
SIMPSON = [
    ([100.0, 120.0, 140.0, 160.0], [1.0, 1.0, 0.0, 1.0]),
    ([900.0, 920.0, 940.0, 960.0], [0.0, 0.0, 1.0, 0.0]),
]


def test_longer_answers_that_fail_correlate() -> None:
    assert pearson(TOKENS, REWARDS) == pytest.approx(-0.878310, abs=5e-7)
    assert spearman(TOKENS, REWARDS) == pytest.approx(-0.878310, abs=5e-7)


def test_a_correlation_between_tasks_is_none_within() -> None:
    found = correlation(SIMPSON, TOLERANCE)

    assert found.pearson == pytest.approx(-0.499220, abs=1e-6)
    assert [pearson(*task) for task in SIMPSON] == pytest.approx(
        [-0.258199, 0.258199], abs=5e-7
    )
    assert found.within_pearson == pytest.approx(0.0, abs=1e-12)
    assert (found.num_rollouts, found.num_tasks) == (8, 2)


@pytest.mark.parametrize(
    ("tokens", "rewards"),
    [
        (TOKENS, [0.5] * 6),
        ([300.0] * 6, REWARDS),
        (TOKENS, [0.1 + 0.2, *[0.3] * 5]),
        ([1.0], [1.0]),
        ([], []),
    ],
)
def test_a_side_that_is_constant_has_no_correlation(
    tokens: list[float], rewards: list[float]
) -> None:
    found = correlation([(tokens, rewards)], TOLERANCE)

    assert (found.pearson, found.spearman) == (None, None)
    assert (found.within_pearson, found.within_spearman) == (None, None)
    assert found.num_rollouts == len(tokens)


def test_tasks_of_one_rollout_say_nothing_within() -> None:
    found = correlation([([100.0], [1.0]), ([200.0], [0.0])], TOLERANCE)

    assert found.pearson == pytest.approx(-1.0)
    assert found.within_pearson is None


def test_equal_values_share_their_mean_rank() -> None:
    assert ranks([3.0, 1.0, 3.0, 2.0, 3.0]) == [4.0, 1.0, 4.0, 2.0, 4.0]
    assert ranks([2.0, 1.0] * 20) == [30.5, 10.5] * 20


def test_huge_rewards_correlate_as_well_as_small_ones() -> None:
    assert pearson(TOKENS, [r * 1e300 for r in REWARDS]) == pytest.approx(
        pearson(TOKENS, REWARDS)
    )
