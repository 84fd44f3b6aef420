"""The planner of adaptive repeats, and a simulation of what it saves."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    TaskState,
    is_settled,
    next_round,
    round_in_words,
    width,
)

STATES = st.lists(
    st.integers(1, 40).flatmap(
        lambda planned: st.integers(0, planned).flatmap(
            lambda n: st.tuples(st.just(planned), st.just(n), st.integers(0, n))
        )
    ),
    min_size=1,
    max_size=20,
)


def options(**given: object) -> AdaptiveOptions:
    return AdaptiveOptions.made({"adaptive": True, **given})


def states_of(counts: Sequence[tuple[int, int, int]]) -> list[TaskState]:
    return [TaskState(place, *count) for place, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("counts", "target", "expected"),
    [
        ((4, 4, 2), None, True), ((4, 4, 0), None, False), ((64, 64, 64), None, False),
        ((4, 4, 2), 0.3, False), ((60, 60, 30), 0.3, True), ((40, 40, 0), 0.3, True),
        ((4, 0, 0), None, False), ((1, 1, 1), 0.9, False),
    ],
)  # fmt: skip
def test_a_task_with_nothing_open_is_settled(
    counts: tuple[int, int, int], target: float | None, *, expected: bool
) -> None:
    (state,) = states_of([counts])

    assert is_settled(state, options(target_width=target)) is expected


def test_only_open_tasks_get_more_repeats() -> None:
    states = states_of([(4, 4, 0), (4, 4, 2), (4, 4, 4), (64, 64, 0), (4, 0, 0)])

    found = next_round(states, options())

    assert found.more == {0: 2, 2: 2}
    assert (found.summary.num_settled, found.summary.num_exhausted) == (1, 2)
    assert (found.summary.planned, found.summary.uniform) == (84, 5 * 64)


def test_no_more_is_asked_than_needed() -> None:
    (state,) = states_of([(40, 40, 20)])

    more = next_round([state], options(target_width=0.295)).more[0]

    assert 0 < more < 20
    assert width(state) > 0.295


def test_a_budget_goes_to_the_widest_first() -> None:
    states = states_of([(8, 8, 0), (4, 4, 0), (2, 2, 0)])

    found = next_round(states, options(max_rollouts=17))

    assert found.more == {2: 1, 1: 2}
    assert found.summary.is_out_of_budget
    assert found.summary.planned == 17
    over = next_round(states, options(max_rollouts=5))
    assert over.more == {}
    assert "without rollouts left" in round_in_words(over.summary)


@given(STATES, st.sampled_from([None, 0.2, 0.5]), st.none() | st.integers(1, 300))
def test_a_round_keeps_to_its_bounds(
    counts: list[tuple[int, int, int]], target: float | None, budget: int | None
) -> None:
    states = states_of(counts)
    chosen = options(max_repeats=32, target_width=target, max_rollouts=budget)

    more, summary = next_round(states, chosen)

    for state in states:
        added = more.get(state.key, 0)
        assert added >= 0
        assert not added or state.planned + added <= 32
        assert not (added and is_settled(state, chosen))
    before = sum(state.planned for state in states)
    assert summary.planned == before + sum(more.values())
    assert budget is None or summary.planned <= max(before, budget)
    told = summary.num_settled + summary.num_exhausted + summary.num_open
    assert told == summary.num_tasks == len(states)


def simulated(
    rates: Sequence[float], chosen: AdaptiveOptions, random: Random
) -> tuple[list[TaskState], AdaptiveSummary, int]:
    """Play all rounds of an adaptive plan that begins with 4 repeats."""
    states = [
        TaskState(place, 4, 4, sum(random.random() < rate for _ in range(4)))
        for place, rate in enumerate(rates)
    ]
    for rounds in range(100):
        more, summary = next_round(states, chosen)
        if not more:
            return states, summary, rounds
        for place, state in enumerate(states):
            added = more.get(place, 0)
            passed = sum(random.random() < rates[place] for _ in range(added))
            states[place] = TaskState(
                place, state.planned + added, state.n + added, state.c + passed
            )
    raise AssertionError("the rounds do not end")


@pytest.mark.parametrize(("target", "saved"), [(None, 0.5), (0.3, 0.3)])
def test_adaptive_repeats_cost_less(target: float | None, saved: float) -> None:
    random = Random(5)  # noqa: S311 - repeatable on purpose
    rates = [random.betavariate(0.5, 0.5) for _ in range(400)]

    chosen = options(max_repeats=64, target_width=target)
    states, summary, rounds = simulated(rates, chosen, random)

    assert rounds <= 12
    assert summary.planned <= (1 - saved) * summary.uniform
    assert all(is_settled(s, chosen) or s.planned == 64 for s in states)
