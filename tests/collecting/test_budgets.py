import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.budgets import (
    FailureBudget,
    Streak,
    drain_margin,
    signature_of,
)
from reward_profiling.errors import GymRejectedError, GymUnavailableError


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        (None, FailureBudget()),
        ("10", FailureBudget(count=10)),
        ("0", FailureBudget(count=0)),
        ("10%", FailureBudget(share=0.1)),
        ("0.25", FailureBudget(share=0.25)),
    ],
)
def test_a_budget_is_a_count_or_a_share(
    text: str | None, budget: FailureBudget
) -> None:
    assert FailureBudget.parse(text) == budget


@pytest.mark.parametrize("text", ["ten", "-1", "100%", "1.5", "", "%", "nan"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither a count"):
        FailureBudget.parse(text)


def test_a_share_needs_ten_finished() -> None:
    budget = FailureBudget(share=0.1)

    assert budget.exceeded(2, 2) is None
    assert budget.exceeded(1, 10) is None
    assert budget.exceeded(4, 13) == "4 of 13 rollouts failed, over 10 %"


def test_a_count_is_exceeded_by_one_more() -> None:
    assert FailureBudget(count=3).exceeded(3, 3) is None
    assert FailureBudget(count=3).exceeded(4, 4) == "4 rollouts failed, more than 3"


def refused(body: str) -> GymRejectedError:
    return GymRejectedError("x", kind="HTTPStatusError", status=500, body=body)


def test_errors_are_alike_but_for_numbers() -> None:
    one, other = refused("request 12 of 0f3c9a11"), refused("request 7 of 9ab41d02")

    assert signature_of(one) == signature_of(other)
    assert signature_of(one) != signature_of(refused("quota"))


def test_a_streak_needs_two_tasks() -> None:
    streak = Streak(limit=3)
    for repeat in range(5):
        streak.add(refused("bad key"), (0, repeat))
    assert not streak.is_over_limit

    streak.add(refused("bad key"), (1, 0))

    assert streak.is_over_limit
    assert streak.message == "x"


def test_a_streak_ends_with_any_other_outcome() -> None:
    streak = Streak(limit=2)
    assert not streak.add(refused("a"), (0, 0))
    assert streak.add(refused("a"), (1, 0))
    assert not streak.add(GymUnavailableError("b"), (2, 0))
    streak.end()

    assert not streak.is_over_limit
    assert not streak.add(refused("a"), (3, 0))


@given(st.lists(st.floats(0.001, 1e4), max_size=40))
def test_the_drain_margin_is_a_quartile(
    durations: list[float],
) -> None:
    margin = drain_margin(durations)

    if len(durations) < 5:
        assert margin == 0.0
    else:
        below = sum(duration <= margin for duration in durations)
        assert margin in durations
        assert below >= 0.75 * len(durations)
