import pytest

from reward_profiling.numerics.correlation import pearson, ranks, spearman

TOKENS = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
REWARDS = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_longer_failing_answers_correlate() -> None:
    assert pearson(TOKENS, REWARDS) == pytest.approx(-0.878310, abs=5e-7)
    assert spearman(TOKENS, REWARDS) == pytest.approx(-0.878310, abs=5e-7)


def test_equal_values_share_a_mean_rank() -> None:
    assert ranks([3.0, 1.0, 3.0, 2.0, 3.0]) == [4.0, 1.0, 4.0, 2.0, 4.0]
    assert ranks([2.0, 1.0] * 20) == [30.5, 10.5] * 20


def test_huge_rewards_correlate_as_well() -> None:
    assert pearson(TOKENS, [r * 1e300 for r in REWARDS]) == pytest.approx(
        pearson(TOKENS, REWARDS)
    )
