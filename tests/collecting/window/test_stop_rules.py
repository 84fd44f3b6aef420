"""When a collection stops by itself, and which reason comes first."""

from typing import Any

import httpx
import pytest

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.window.recorder import Journals, Recorder
from reward_profiling.collecting.window.server_gates import Gates
from reward_profiling.collecting.window.stop_rules import Stop, StopRules
from reward_profiling.errors import GymRejectedError
from reward_profiling.servers.gym_client import GymClient
from reward_profiling.servers.routes import Route
from tests.collecting.window.parts import ROUTE, Heard, recorder

OTHER = Route("http://two", None, None)


@pytest.fixture
def keeping(journals: Journals) -> Recorder:
    return recorder(journals, Heard(), limit=2)


def rules(keeping: Recorder, **options: Any) -> StopRules:  # noqa: ANN401
    def nothing(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(str(request.url))

    client = GymClient(httpx.AsyncClient(transport=httpx.MockTransport(nothing)))
    gates = Gates(client, {"a": ROUTE}, keeping)
    chosen = CollectOptions.made(options)
    return StopRules(chosen, keeping.progress, keeping.streak, gates, lambda _: True)


def test_nothing_stops_a_good_run(keeping: Recorder) -> None:
    keeping.progress.add_record(1.0, agent="a", masked=False, now=1.0)

    assert rules(keeping, max_failures="0", time_budget=60).judge(2.0) is None


def test_a_repeated_error_comes_first(keeping: Recorder) -> None:
    for task in range(2):
        keeping.progress.add_failure("agent_run_error", agent="a", now=1.0)
        keeping.streak.add(GymRejectedError("no such key"), (task, 0))

    stop = rules(keeping, max_failures="0", time_budget=1).judge(5.0)

    assert stop is not None
    assert stop.is_failure
    said = "2 rollouts of 2 tasks in a row failed in the same way"
    assert stop.reason.startswith(said)
    assert "no such key. They do not count as attempts" in stop.reason
    assert stop.reason.endswith("--identical-failures raises the limit of 2")


def test_too_many_failures_precede_the_time(keeping: Recorder) -> None:
    keeping.progress.add_failure("agent_run_error", agent="a", now=1.0)

    stop = rules(keeping, max_failures="0", time_budget=1).judge(5.0)

    assert stop == Stop("1 rollouts failed, more than 0", 60.0, is_failure=True)


def test_no_rollout_starts_too_late_to_end(keeping: Recorder) -> None:
    keeping.progress.durations.extend([10.0] * 5)
    judged = rules(keeping, time_budget=60)

    assert judged.judge(50.0) is None
    stop = judged.judge(51.0)
    assert stop == Stop("the time budget of 60 s is used up", 9.0, is_failure=False)


def test_patience_is_judged_at_rest(keeping: Recorder) -> None:
    judged = rules(keeping, server_patience=30)
    gate = judged.gates[ROUTE.url]
    assert judged.judge(100.0) is None  # it answers

    gate.down_since = 60.0
    stop = judged.judge(100.0)

    assert stop is not None
    assert stop.reason == (
        "http://one has not answered for 40 s; its rollouts are still owed"
    )
    assert judged.judge(80.0) is None
    judged.is_wanted = lambda _: False
    assert judged.judge(100.0) is None  # nothing waits for it


def test_a_working_server_prolongs_the_run(keeping: Recorder) -> None:
    judged = rules(keeping, server_patience=30)
    other = Gates(judged.gates.client, {"a": ROUTE, "b": OTHER}, keeping)
    judged.gates = other
    other[ROUTE.url].down_since = 1.0
    other[OTHER.url].in_flight = 1

    assert judged.judge(100.0) is None
