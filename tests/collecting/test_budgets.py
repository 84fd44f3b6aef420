import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.budgets import (
    FailureBudget,
    Streak,
    drain_margin,
    is_requests_own,
    signature_of,
)
from reward_profiling.errors import (
    ContextLengthError,
    GymError,
    GymRejectedError,
    GymUnavailableError,
)


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


def test_a_streak_needs_half_as_many_tasks() -> None:
    streak = Streak(limit=6, num_tasks=30)
    for repeat in range(8):
        streak.add(refused("bad key"), (0, repeat))
        streak.add(refused("bad key"), (1, repeat))
    assert not streak.is_over_limit

    streak.add(refused("bad key"), (2, 0))

    assert streak.is_over_limit
    assert (streak.num_failed_tasks, streak.message) == (3, "x")


@pytest.mark.parametrize(("num_tasks", "is_over"), [(2, True), (3, False)])
def test_all_tasks_of_a_small_plan_will_do(num_tasks: int, is_over: bool) -> None:  # noqa: FBT001
    streak = Streak(limit=5, num_tasks=num_tasks)
    for task, repeat in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2)):
        streak.add(refused("bad key"), (task, repeat))

    assert streak.is_over_limit == is_over


def test_a_streak_ends_with_any_other_outcome() -> None:
    streak = Streak(limit=2, num_tasks=9)
    assert not streak.add(refused("a"), (0, 0))
    assert not streak.add(GymUnavailableError("b"), (2, 0))
    streak.end()

    assert not streak.is_over_limit
    assert not streak.add(refused("a"), (3, 0))


def test_what_has_stopped_a_run_stays_its_reason() -> None:
    streak = Streak(limit=2, num_tasks=9)
    for task in range(2):
        streak.add(refused("a"), (task, 0))

    streak.end()
    streak.add(refused("another"), (5, 0))

    assert streak.is_over_limit
    assert streak.keys == {(0, 0), (1, 0)}


@pytest.mark.parametrize(
    ("error", "is_own"),
    [
        (GymRejectedError("x", status=400), True),
        (GymRejectedError("x", status=413), True),
        (GymRejectedError("x", status=422), True),
        (ContextLengthError("x", status=500), True),
        (GymRejectedError("x", status=401), False),
        (GymRejectedError("x", status=404), False),
        (GymUnavailableError("x", status=500), False),
        (GymUnavailableError("x"), False),
    ],
)
def test_some_errors_are_about_the_request(error: GymError, is_own: bool) -> None:  # noqa: FBT001
    assert is_requests_own(error) == is_own


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
