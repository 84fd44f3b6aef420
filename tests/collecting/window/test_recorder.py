"""What is written of rollouts as they end, and when a failure is held back."""

import pytest

from reward_profiling.collecting.window.recorder import Journals, Recorder, Took
from reward_profiling.errors import ContextLengthError, GymError, GymRejectedError
from reward_profiling.files.run_files import RunFiles
from tests.collecting.window.parts import Heard, failure, planned, recorder, rows
from tests.collecting.window.parts import success as succeeded

TOOK = Took(1700000000.0, 2.5, 1)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def keeping(journals: Journals, heard: Heard) -> Recorder:
    """Give a recorder whose streaks end a run at three."""
    return recorder(journals, heard)


def fail(
    keeping: Recorder, task: int, said: str = "quota", error: GymError | None = None
) -> None:
    rollout, error = planned(task), error or GymRejectedError(said, status=403)
    keeping.record(rollout, failure(rollout, error), error, TOOK)


def succeed(keeping: Recorder, task: int, reply: bytes = b'{"reward":1.0}') -> None:
    rollout = planned(task)
    keeping.record(rollout, succeeded(rollout, reply), None, TOOK)


def test_a_record_is_written_and_timed(keeping: Recorder, files: RunFiles) -> None:
    succeed(keeping, 4)

    key = {"_ng_task_index": 4, "_ng_rollout_index": 0}
    assert rows(files.rollouts) == [{"reward": 1.0, **key}]
    timing = {"started": 1700000000.0, "seconds": 2.5, "retries": 1}
    assert rows(files.timings) == [{**key, **timing}]
    assert keeping.progress.collected == 1


def test_alike_failures_wait_for_a_success(keeping: Recorder, files: RunFiles) -> None:
    fail(keeping, 0)
    fail(keeping, 1)
    assert rows(files.failures) == []

    succeed(keeping, 2)

    assert [row["_ng_task_index"] for row in rows(files.failures)] == [0, 1]
    assert keeping.streak.keys == set()


def test_another_failure_writes_those_before(
    keeping: Recorder, files: RunFiles
) -> None:
    fail(keeping, 0)
    fail(keeping, 1, said="no such model")

    assert [row["_ng_task_index"] for row in rows(files.failures)] == [0]


def test_the_end_writes_what_is_held(keeping: Recorder, files: RunFiles) -> None:
    fail(keeping, 0)

    keeping.close()

    assert [row["_ng_task_index"] for row in rows(files.failures)] == [0]
    assert keeping.progress.failed == 1


def test_too_long_a_streak_is_taken_back(keeping: Recorder, files: RunFiles) -> None:
    for task in range(3):
        fail(keeping, task)

    keeping.close()

    assert keeping.streak.is_over_limit
    assert rows(files.failures) == []
    assert keeping.progress.failed == 0


def test_a_late_success_charges_no_streak(keeping: Recorder, files: RunFiles) -> None:
    for task in range(3):
        fail(keeping, task)

    succeed(keeping, 4)
    fail(keeping, 5, said="another")
    keeping.close()

    assert rows(files.failures) == []
    assert [row["_ng_task_index"] for row in rows(files.rollouts)] == [4]
    assert keeping.progress.failed == 0


def test_requests_that_were_never_right_stop_the_run(
    keeping: Recorder, files: RunFiles
) -> None:
    for task in range(3):
        fail(keeping, task, error=GymRejectedError("no such field", status=422))

    keeping.close()

    assert keeping.streak.is_over_limit
    assert keeping.streak.is_charged
    assert [row["_ng_task_index"] for row in rows(files.failures)] == [0, 1, 2]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_bad_request_beside_a_success_is_its_own(
    keeping: Recorder, files: RunFiles, status: int
) -> None:
    succeed(keeping, 9)
    for task in range(4):
        fail(keeping, task, error=GymRejectedError("no such field", status=status))

    assert not keeping.streak.is_over_limit
    assert len(rows(files.failures)) == 4


def test_a_request_that_is_too_long_stops_nothing(
    keeping: Recorder, files: RunFiles
) -> None:
    for task in range(4):
        fail(keeping, task, error=ContextLengthError("too long", status=500))

    assert not keeping.streak.is_over_limit
    classes = {row["_ng_failure_class"] for row in rows(files.failures)}
    assert classes == {"context_length_exceeded"}


def test_unkept_replies_are_counted(keeping: Recorder, files: RunFiles) -> None:
    succeed(keeping, 0, b'{"_ng_no_persist":true}')

    assert keeping.progress.failures == {"not kept by the server": 1}
    assert rows(files.failures) == rows(files.rollouts) == []


def test_a_servers_own_failure_is_not_held(keeping: Recorder, files: RunFiles) -> None:
    succeed(keeping, 0, b'{"_ng_failure_class":"judge_failed"}')

    assert rows(files.failures)[0]["_ng_failure_class"] == "judge_failed"


def test_each_kind_of_failure_is_told_once(keeping: Recorder, heard: Heard) -> None:
    fail(keeping, 0)
    fail(keeping, 1)
    fail(keeping, 2, said="no such model")

    assert heard.notes == [
        "task 0 repeat 0 failed (agent_run_error): quota",
        "task 2 repeat 0 failed (agent_run_error): no such model",
    ]


def test_notes_cover_a_limited_set_of_kinds(keeping: Recorder, heard: Heard) -> None:
    for number in range(30):
        keeping.tell_once(f"kind {number}", "a note")

    assert len(heard.notes) == 20
