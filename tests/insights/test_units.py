import pytest

from reward_profiling.insights.units import reward_signature

TOLERANCE = 1e-6


@pytest.mark.parametrize(
    ("rewards", "has_signal"),
    [
        ([0.1 + 0.2, 0.3, 0.3, 0.3], False),
        ([0.3, 0.301, 0.3, 0.3], True),
        ([0.5, 0.5, 0.5, 0.5], False),
        ([-1.0, 1.0, -1.0, 1.0], True),
        ([2.0, 2.0, 2.0, 2.0], False),
        ([0.0, 0.9e-6, 1.8e-6], True),
    ],
)
def test_signal_must_exceed_the_tolerance(
    rewards: list[float], *, has_signal: bool
) -> None:
    assert (len(reward_signature(rewards, TOLERANCE)) > 1) is has_signal
