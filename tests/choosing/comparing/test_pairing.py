from reward_profiling.choosing.comparing.pairing import RunTask, pair_tasks
from reward_profiling.choosing.row_matching import Contents


def task(place: int, whole: str, core: str, agent: str = "a") -> RunTask:
    return RunTask(agent, Contents(whole.encode(), core.encode()), place)


def test_tasks_are_paired_by_content() -> None:
    before = [task(0, "p", "P"), task(1, "q", "Q"), task(2, "r", "R")]
    after = [task(0, "r", "R"), task(1, "q2", "Q"), task(2, "s", "S")]

    found = pair_tasks(before, after)

    assert found.pairs == [(1, 1), (2, 0)]
    assert found.num_changed == 1


def test_another_agents_task_is_distinct() -> None:
    assert pair_tasks([task(0, "p", "P")], [task(0, "p", "P", "b")]).pairs == []


def test_equal_tasks_pair_one_to_one() -> None:
    before = [task(0, "p", "P"), task(1, "p", "P"), task(2, "p", "P")]

    assert pair_tasks(before, before[:2]).pairs == [(0, 0), (1, 1)]
