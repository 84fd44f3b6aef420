import pytest

from reward_profiling.insights.measures.length import correlate
from reward_profiling.numerics.correlation import pearson
from reward_profiling.profiling.rollout_table import UNKNOWN, YES
from tests.insights.tables import Rollout, insights

TOLERANCE = 1e-6
TOKENS = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
REWARDS = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
SIMPSON = [
    ([100.0, 120.0, 140.0, 160.0], [1.0, 1.0, 0.0, 1.0]),
    ([900.0, 920.0, 940.0, 960.0], [0.0, 0.0, 1.0, 0.0]),
]


def test_truncated_answers_are_told_apart() -> None:
    found = insights([
        Rollout(1.0, tokens=100), Rollout(1.0, tokens=200), Rollout(1.0, tokens=300),
        *[Rollout(0.0, tokens=t, truncated=YES) for t in (400.0, 500.0, 600.0)],
    ]).run.length  # fmt: skip

    assert found.correlation.pearson == pytest.approx(-0.8783, abs=5e-5)
    assert found.correlation.spearman == pytest.approx(-0.8783, abs=5e-5)
    assert (found.num_truncated, found.num_truncation_known) == (3, 6)
    assert (found.truncated.pass_rate, found.finished.pass_rate) == (0.0, 1.0)
    assert found.truncated.mean_tokens == 500


def test_empty_answers_are_separable() -> None:
    rows = [Rollout(0.0, empty=YES)] * 6 + [Rollout(1.0)] * 4

    found = insights(rows)

    assert (found.run.length.num_empty, found.run.length.num_empty_known) == (6, 10)
    assert found.run.length.answered.mean_reward == 1.0
    assert "empty_answers" in {finding.name for finding in found.findings}
    assert (
        "60 %" in next(f for f in found.findings if f.name == "empty_answers").sentence
    )


def test_unknown_tokens_are_no_zeros() -> None:
    length = insights([
        Rollout(1.0, tokens=50), Rollout(0.0), Rollout(0.0, truncated=UNKNOWN),
    ]).run.length  # fmt: skip

    assert (length.mean_tokens, length.num_with_tokens) == (50, 1)
    assert length.num_truncation_known == 2
    assert length.correlation.num_rollouts == 1


def test_correlation_can_vanish_within_tasks() -> None:
    found = correlate(SIMPSON, TOLERANCE)

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
def test_a_constant_side_has_no_correlation(
    tokens: list[float], rewards: list[float]
) -> None:
    found = correlate([(tokens, rewards)], TOLERANCE)

    assert (found.pearson, found.spearman) == (None, None)
    assert (found.within_pearson, found.within_spearman) == (None, None)
    assert found.num_rollouts == len(tokens)


def test_single_rollouts_tell_nothing_within() -> None:
    found = correlate([([100.0], [1.0]), ([200.0], [0.0])], TOLERANCE)

    assert found.pearson == pytest.approx(-1.0)
    assert found.within_pearson is None
