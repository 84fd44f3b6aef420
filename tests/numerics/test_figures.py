"""Figures in text: small and large ones keep their digits."""

import pytest

from reward_profiling.numerics.figures import (
    figure,
    is_residue,
    measured,
    percent,
    signed_figure,
)


@pytest.mark.parametrize(
    ("value", "said", "signed"),
    [(0.5, "0.500", "+0.500"), (0.0, "0", "+0"), (-0.0, "0", "+0"), (1, "1", "+1"),
     (0.0002, "0.0002", "+0.0002"), (-1.23456e-05, "-1.23e-5", "-1.23e-5"),
     (0.0625, "0.063", "+0.063"), (1234.56, "1,234.6", "+1,234.6"),
     (999999.5, "1,000,000", "+1,000,000"), (2e29, "2.00e29", "+2.00e29")],
)  # fmt: skip
def test_a_figure_keeps_three_digits(value: float, said: str, signed: str) -> None:
    assert (figure(value), signed_figure(value)) == (said, signed)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.625, "62.5 %"), (0.5, "50 %"), (0.996, "99.6 %"),
     (0.0625, "6.3 %"), (0.0004, "under 0.1 %"), (0.9996, "over 99.9 %")],
)  # fmt: skip
def test_a_share_is_never_rounded_to_none_or_to_all(share: float, said: str) -> None:
    assert percent(share) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0.0123, "0.0123"), (33.33, "33.3"), (999.7, "1,000")]
)
def test_what_a_clock_measured_has_three_digits(value: float, said: str) -> None:
    assert measured(value) == said


@pytest.mark.parametrize(
    ("error", "value", "is_it"),
    [
        (1.59e-15, 29.725, True),
        (0.0, 0.0, True),
        (1e-17, 0.0, True),
        (1e-6, 29.725, False),
        (1e-9, 1.0, False),
        (2e-7, 1e-6, False),
    ],
)
def test_what_rounding_leaves_is_no_error(
    error: float, value: float, *, is_it: bool
) -> None:
    assert is_residue(error, value) == is_it
