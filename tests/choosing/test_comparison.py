import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.choosing.comparing.judgement import judgement_of
from reward_profiling.choosing.comparing.paired_difference import (
    difference_of,
    tasks_needed,
)
from reward_profiling.choosing.comparing.pairing import RunTask, pair_tasks
from reward_profiling.choosing.comparing.task_pairs import (
    Pair,
    Side,
    flips_of,
    mcnemar_p,
)
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.choosing.row_matching import Contents
from reward_profiling.numerics.uncertainty import standard_error, variance

RATES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=5, max_size=30
)


def side(task: int, passed: int, n: int = 4) -> Side:
    rewards = [1.0] * passed + [0.0] * (n - passed)
    return Side(task, n, passed, passed / n, variance(rewards))


def pairs_of(rates: list[tuple[int, int]], agent: str = "a") -> list[Pair]:
    return [Pair(agent, side(t, a), side(t, b)) for t, (a, b) in enumerate(rates)]


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(9, 2, 0.065430), (5, 0, 0.0625), (3, 3, 1.0), (0, 1, 1.0), (0, 0, None)],
)
def test_flips_have_an_exact_p_value(gained: int, lost: int, p: float | None) -> None:
    expected = None if p is None else pytest.approx(p, abs=5e-7)

    assert mcnemar_p(gained, lost) == expected
    assert mcnemar_p(lost, gained) == expected


@pytest.mark.parametrize(
    ("omega2", "within", "repeats", "needed"),
    [(1 / 9, 0, 1, 969), (1 / 9, 1 / 6, 1, 3876), (1 / 9, 1 / 6, 4, 1696)],
)
def test_the_papers_designs_need_its_numbers_of_tasks(
    omega2: float, within: float, repeats: int, needed: int
) -> None:
    total = omega2 + within / repeats + within / repeats

    # The paper rounds to the nearest; a fraction of a task is a task here.
    assert tasks_needed(total, 0.03) == pytest.approx(needed, abs=1)


@given(RATES)
def test_the_paired_error_is_that_of_both_less_what_they_share(
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
def test_a_verdict_is_given_only_where_the_interval_allows_it(
    rates: list[tuple[int, int]], margin: float, expected: str
) -> None:
    found = difference_of(None, pairs_of(rates), CompareOptions(max_regression=margin))

    assert found.judgement == expected


def test_no_bound_means_no_verdict() -> None:
    found = difference_of(None, pairs_of([(4, 0)] * 9), CompareOptions())

    assert found.judgement is None
    assert judgement_of(found, [found], CompareOptions()) is None


@pytest.mark.parametrize(("count", "reach"), [(20, 0.1391), (300, 0.0099)])
def test_runs_that_are_equal_throughout_are_not_certain(
    count: int, reach: float
) -> None:
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


def test_what_a_design_can_see_shrinks_with_its_tasks() -> None:
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


def test_flips_are_listed_lost_ones_first() -> None:
    pairs = pairs_of([(4, 4), (0, 3), (4, 0), (3, 1), (2, 4), (0, 0)])

    found = difference_of(None, pairs, CompareOptions()).mcnemar
    flips = flips_of(pairs)

    assert (found.gained, found.lost, found.both, found.neither) == (1, 2, 1, 1)
    assert found.undecided == 1
    assert [(flip.candidate_task, flip.is_lost) for flip in flips] == [
        (2, True), (3, True), (1, False),
    ]  # fmt: skip


def test_the_worst_agent_decides_where_that_is_asked() -> None:
    options = CompareOptions(max_regression=0.1, every_agent=True)
    good = pairs_of([(1, 4)] * 40)
    bad = pairs_of([(4, 1), (4, 0), (3, 0), (4, 2), (4, 1)], "b")
    parts = [difference_of("a", good, options), difference_of("b", bad, options)]
    overall = difference_of(None, [*good, *bad], options)

    assert judgement_of(overall, parts, options) == "REGRESSED"
    assert judgement_of(overall, parts, CompareOptions(max_regression=0.1)) == "PASS"


def task(place: int, whole: str, core: str, agent: str = "a") -> RunTask:
    return RunTask(agent, Contents(whole.encode(), core.encode()), place)


def test_tasks_are_paired_by_what_they_say_and_not_where_they_stand() -> None:
    before = [task(0, "p", "P"), task(1, "q", "Q"), task(2, "r", "R")]
    after = [task(0, "r", "R"), task(1, "q2", "Q"), task(2, "s", "S")]

    found = pair_tasks(before, after)

    assert found.pairs == [(1, 1), (2, 0)]
    assert found.num_changed == 1


def test_another_agents_task_is_another_task() -> None:
    assert pair_tasks([task(0, "p", "P")], [task(0, "p", "P", "b")]).pairs == []


def test_of_equal_tasks_as_many_are_paired_as_both_have() -> None:
    before = [task(0, "p", "P"), task(1, "p", "P"), task(2, "p", "P")]

    assert pair_tasks(before, before[:2]).pairs == [(0, 0), (1, 1)]
