import pytest

from tests.insights.tables import MASKED, MISSING, Rollout, insights


def test_masked_rollouts_add_no_spread() -> None:
    (task,) = insights([1.0, 0.0, MASKED, MASKED]).tasks

    assert (task.mean, task.scored, task.masked) == (0.5, 2, 2)
    assert task.std == pytest.approx(0.7071, abs=5e-5)


def test_a_task_without_records_has_nulls() -> None:
    found = insights([0.0, 1.0, 1.0, MISSING], [MISSING] * 4)

    assert found.run.coverage.scored_share == 0.375
    some, none = found.tasks
    assert (some.planned, some.scored, some.missing) == (4, 3, 1)
    assert (none.planned, none.scored, none.mean, none.std) == (4, 0, None, None)
    assert none.rollouts is not None
    assert none.rollouts.state == ("missing",) * 4


def test_all_or_no_passes_leave_doubt() -> None:
    always, never = insights([1.0] * 8, [0.0] * 8).tasks

    assert always.interval is not None
    assert (always.interval.low, always.interval.high) == pytest.approx(
        (0.676, 1), abs=5e-4
    )
    assert never.interval is not None
    assert (never.interval.low, never.interval.high) == pytest.approx(
        (0, 0.324), abs=5e-4
    )
    assert never.upper_bound == pytest.approx(0.312, abs=5e-4)
    assert always.lower_bound == pytest.approx(0.688, abs=5e-4)
    assert (never.lower_bound, always.upper_bound) == (None, None)


def test_a_task_of_two_agents_is_two_units() -> None:
    found = insights([Rollout(1.0, agent="b"), Rollout(0.0, agent="a")] * 2)

    assert [(t.task_index, t.agent, t.passed) for t in found.tasks] == [
        (0, "a", 0), (0, "b", 2),
    ]  # fmt: skip
    assert found.run.coverage.num_tasks == 2
    assert found.tasks[0].rollouts is not None
    assert found.tasks[0].rollouts.rollout_index == (1, 3)


def test_the_most_telling_task_ranks_first() -> None:
    found = insights([0.0] * 4, [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0])

    assert [task.rank for task in found.tasks] == [3, 2, 1, None]
