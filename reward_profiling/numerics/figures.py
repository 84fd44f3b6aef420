"""Numbers and shares in text. Every place that shows one to a person calls this module.

The report's page draws some of its numbers in the browser: `template/figures.js` has
the same rules, and a test compares the two.
"""

import math
from decimal import ROUND_HALF_UP, Decimal

_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e7
"""Sizes that are written without an exponent."""

_DECIMALS = ((10.0, 3), (100.0, 2), (10_000.0, 1))
"""Decimals of a number below each size; a larger one has none."""

_RESIDUE, _SMALLEST_OF_RESIDUES = 1e-12, 1e-3

_LEAST = 1e-3
"""What three decimals still show."""


def figure(value: float) -> str:
    """Return a number with three or four significant digits; a whole one as it is.

    An error of 0.0002 is not shown as 0.000, which would claim that there is none.
    """
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size and not _PLAIN_FROM <= size < _PLAIN_TO:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{digits}e{int(exponent)}"
    if value == round(value):
        return f"{round(value):,}"  # an int, since a float may be -0.0
    if size < _LEAST:
        return f"{value:.3g}"
    places = next((places for bound, places in _DECIMALS if size < bound), 0)
    # Python rounds an exact half to even, browsers round it away from zero: 1/16 is
    # a common mean, and would read 0.062 here and 0.063 there.
    step = Decimal(1).scaleb(-places)
    return f"{Decimal(value).quantize(step, ROUND_HALF_UP):,}"


def signed_figure(value: float) -> str:
    """Return the same with its sign, "+" included."""
    return figure(value) if value < 0 else f"+{figure(value)}"


def is_residue(error: float, value: float) -> bool:
    """Say whether an error is only what rounding leaves of equal values."""
    return error <= _RESIDUE * max(abs(value), _SMALLEST_OF_RESIDUES)


def correlation(value: float) -> str:
    """Return a correlation: two decimals and its sign."""
    return f"{value:+.2f}"


def measured(value: float) -> str:
    """Return seconds or a rate in three digits: a clock tells no more."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"  # noqa: PLR2004


def setting(value: float) -> str:
    """Return a number that a person chose, as they would write it."""
    return f"{value:g}"


def percent(share: float) -> str:
    """Return a share in percent with at most one decimal, never rounded to none or all.

    Half a tenth goes up, as browsers round; Python's own rounding would go to even.
    """
    tenths = math.floor(1000 * share + 0.5)
    if share > 0 and tenths < 1:
        return "under 0.1 %"
    if share < 1 and tenths >= 1000:  # noqa: PLR2004 - all of it
        return "over 99.9 %"
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest} %" if rest else f"{whole} %"
