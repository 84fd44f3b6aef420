"""Figures in text: small and large ones keep their digits."""

import pytest

from reward_profiling.numerics.figures import figure, signed_figure


@pytest.mark.parametrize(
    ("value", "said", "signed"),
    [(0.5, "0.500", "+0.500"), (0.0, "0.000", "+0.000"), (-0.0, "-0.000", "+0.000"),
     (0.0002, "0.0002", "+0.0002"), (-1.23456e-05, "-1.23e-05", "-1.23e-05"),
     (999999.5, "999999.500", "+999999.500"), (2e29, "2e+29", "+2e+29")],
)  # fmt: skip
def test_a_figure_keeps_three_digits_at_any_scale(
    value: float, said: str, signed: str
) -> None:
    assert (figure(value), signed_figure(value)) == (said, signed)
