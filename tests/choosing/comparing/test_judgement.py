import pytest

from reward_profiling.choosing.comparing.judgement import judgement_of
from reward_profiling.choosing.comparing.paired_difference import (
    difference_of,
)
from reward_profiling.choosing.comparison import CompareOptions
from tests.choosing.comparing.pairs_of_rates import pairs_of


@pytest.mark.parametrize(
    ("rates", "margin", "expected"),
    [
        ([(2, 4), (1, 3), (0, 3), (2, 3), (1, 4), (2, 2)] * 5, 0.0, "PASS"),
        ([(4, 1), (4, 2), (3, 0), (4, 0), (3, 1)] * 5, 0.1, "REGRESSED"),
        ([(4, 0), (0, 4), (2, 1), (1, 3), (3, 2)] * 2, 0.05, "INCONCLUSIVE"),
        ([(4, 0), (0, 4)], 1.0, "INCONCLUSIVE"),
        ([(4, 1)] * 3, 0.0, "INCONCLUSIVE"),
        ([(2, 2)] * 200, 0.06, "PASS"),
    ],
)
def test_a_verdict_needs_a_clear_interval(
    rates: list[tuple[int, int]], margin: float, expected: str
) -> None:
    found = difference_of(None, pairs_of(rates), CompareOptions(max_regression=margin))

    assert found.judgement == expected


def test_no_bound_means_no_verdict() -> None:
    found = difference_of(None, pairs_of([(4, 0)] * 9), CompareOptions())

    assert found.judgement is None
    assert judgement_of(found, [found], CompareOptions()) is None


def test_the_worst_agent_can_decide() -> None:
    options = CompareOptions(max_regression=0.1, every_agent=True)
    good = pairs_of([(1, 4)] * 40)
    bad = pairs_of([(4, 1), (4, 0), (3, 0), (4, 2), (4, 1)], "b")
    parts = [difference_of("a", good, options), difference_of("b", bad, options)]
    overall = difference_of(None, [*good, *bad], options)

    assert judgement_of(overall, parts, options) == "REGRESSED"
    assert judgement_of(overall, parts, CompareOptions(max_regression=0.1)) == "PASS"
