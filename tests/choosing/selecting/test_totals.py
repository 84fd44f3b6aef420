from fractions import Fraction

import pytest

from reward_profiling.choosing.selecting.totals import compare_rates
from reward_profiling.choosing.selection import SelectOptions


def options(**given: object) -> SelectOptions:
    return SelectOptions.made(given)


def test_earlier_rates_are_compared_by_row() -> None:
    pairs = [(0.5, Fraction(1, 2)), (0.9, Fraction(1, 2)), (0.1, Fraction(0))]

    found = compare_rates("pass_rate", pairs, options(open_ends=True).band)

    assert found is not None
    assert (found.num_rows, found.num_moved) == (3, 1)
    assert (found.old_mean, found.new_mean) == pytest.approx((0.5, 1 / 3))
    assert compare_rates("pass_rate", [], options(open_ends=True).band) is None
