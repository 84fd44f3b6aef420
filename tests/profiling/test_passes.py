import math

import pytest

from reward_profiling.profiling.passes import is_pass


@pytest.mark.parametrize(
    ("reward", "threshold", "expected"),
    [
        (0.1 + 0.2, 0.3, True), (0.3, 0.1 + 0.2, True), (0.3 - 1e-8, 0.3, False),
        (-1.0, 1.0, False), (2.0, 1.0, True), (-0.5, -0.5, True), (-math.inf, 0, False),
    ],
)  # fmt: skip
def test_rounding_decides_no_pass(
    reward: float, threshold: float, *, expected: bool
) -> None:
    assert is_pass(reward, threshold) is expected
