import pytest

from tests.insights.tables import Rollout, insights


def test_numbers_that_name_tasks_come_last() -> None:
    found = insights(*(
        [Rollout(0.0, metrics={"question_id": 100.0 + task, "turns": task % 2 + r})
         for r in range(2)]
        for task in range(4)
    ))  # fmt: skip

    assert [(m.name, m.is_identifier) for m in found.metrics] == [
        ("turns", False), ("question_id", True),
    ]  # fmt: skip
    assert [f.name for f in found.findings if f.agent is None] == [
        "metric_is_identifier"
    ]


@pytest.mark.parametrize(
    ("name", "by_task", "is_id"),
    [("question_id", [[7, 7], [8, 8]], True), ("task_idx", [[0], [1]], True),
     ("seed", [[1, 2], [1, 2]], True), ("seed", [[0.5, 0.5]], False),
     ("choice_index", [[0, 1], [1, 1]], False), ("turns", [[3, 3], [4, 4]], False)],
)  # fmt: skip
def test_a_name_marks_a_small_identifier(
    name: str, by_task: list[list[float]], *, is_id: bool
) -> None:
    found = insights(*([Rollout(0.0, metrics={name: v}) for v in t] for t in by_task))

    assert [metric.is_identifier for metric in found.metrics] == [is_id]


def test_shared_difficulty_is_no_identifier() -> None:
    found = insights(*(
        [Rollout(0.0, metrics={"level": float(task % 3)})] * 2 for task in range(9)
    ))  # fmt: skip

    assert [(m.name, m.is_identifier) for m in found.metrics] == [("level", False)]
