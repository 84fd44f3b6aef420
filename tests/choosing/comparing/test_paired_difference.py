import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.choosing.comparing.paired_difference import (
    difference_of,
    tasks_needed,
)
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.numerics.uncertainty import standard_error
from tests.choosing.comparing.pairs_of_rates import RATES, pairs_of


@pytest.mark.parametrize(
    ("omega2", "within", "repeats", "needed"),
    [(1 / 9, 0, 1, 969), (1 / 9, 1 / 6, 1, 3876), (1 / 9, 1 / 6, 4, 1696)],
)
def test_the_papers_task_counts_come_out(
    omega2: float, within: float, repeats: int, needed: int
) -> None:
    total = omega2 + within / repeats + within / repeats

    # The paper rounds to the nearest; a fraction of a task is a task here.
    assert tasks_needed(total, 0.03) == pytest.approx(needed, abs=1)


@given(RATES)
def test_pairing_removes_the_shared_error(
    rates: list[tuple[int, int]],
) -> None:
    pairs = pairs_of(rates)
    found = difference_of(None, pairs, CompareOptions())
    before = standard_error([pair.baseline.value for pair in pairs]) or 0.0
    after = standard_error([pair.candidate.value for pair in pairs]) or 0.0
    shared = 2 * (found.correlation or 0.0) * before * after

    assert found.standard_error is not None
    assert found.standard_error**2 == pytest.approx(
        before**2 + after**2 - shared, abs=1e-9
    )


@given(RATES, st.integers(0, 2**32))
def test_the_order_of_tasks_changes_no_bit(
    rates: list[tuple[int, int]], seed: int
) -> None:
    pairs = pairs_of(rates)
    shuffled = list(pairs)
    Random(seed).shuffle(shuffled)  # noqa: S311 - repeatable on purpose

    options = CompareOptions(max_regression=0.1)

    assert difference_of(None, pairs, options) == difference_of(None, shuffled, options)


@pytest.mark.parametrize(("count", "reach"), [(20, 0.1391), (300, 0.0099)])
def test_equal_runs_are_not_certain(count: int, reach: float) -> None:
    found = difference_of(
        None, pairs_of([(4, 4)] * count), CompareOptions(max_regression=0.01)
    )

    assert found.difference == 0.0
    assert found.interval is not None
    assert found.interval.high == pytest.approx(reach, abs=5e-5)
    assert found.caution is not None
    assert found.judgement == ("INCONCLUSIVE" if count == 20 else "PASS")


def test_too_few_tasks_have_no_interval() -> None:
    found = difference_of(None, pairs_of([(4, 0), (1, 2), (3, 3)]), CompareOptions())

    assert found.interval is None
    assert found.caution == "3 tasks are too few for an interval"
    assert found.standard_error is not None


def test_more_tasks_detect_smaller_changes() -> None:
    rates = [(4, 3), (2, 2), (1, 3), (0, 0), (4, 4), (3, 1)]
    options = CompareOptions(max_regression=0.05)
    few = difference_of(None, pairs_of(rates), options)
    many = difference_of(None, pairs_of(rates * 16), options)

    assert few.detectable is not None
    assert many.detectable is not None
    assert many.detectable < few.detectable / 3.5
    assert many.tasks_needed is not None
    sd = (many.standard_error or 0) * math.sqrt(96)
    assert many.tasks_needed == math.ceil((2.8015852 * sd / 0.05) ** 2)
