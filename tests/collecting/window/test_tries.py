"""One rollout, asked for until it ends: retries, deadline, a server that is down."""

import asyncio

import httpx
import pytest

from reward_profiling.collecting.replies.finished_rollout import Destination
from reward_profiling.collecting.window.recorder import Journals, Recorder
from reward_profiling.collecting.window.tries import ServerDownError, Tries
from reward_profiling.errors import GymUnavailableError
from tests.collecting.window.parts import (
    ROUTE,
    Answer,
    Heard,
    asker,
    planned,
    recorder,
)


def test_only_retries_send_a_request_again() -> None:
    assert not Tries(retries=0, is_asking=True).put_off(0)


def test_an_unsent_rollout_may_always_wait() -> None:
    tries = Tries(retries=4)

    assert tries.put_off(4)
    assert tries.retries == 4


def test_putting_off_a_hang_has_a_limit() -> None:
    tries = Tries(retries=0, is_asking=True)

    assert [tries.put_off(2) for _ in range(3)] == [True, True, False]


@pytest.fixture
def keeping(journals: Journals) -> Recorder:
    return recorder(journals, Heard())


def in_turn(*replies: httpx.Response | Exception) -> Answer:
    """Give each reply once; a probe of the server's health is always answered."""
    left = iter(replies)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/run":
            return httpx.Response(200)
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return answer


GOOD = httpx.Response(200, content=b'{"reward":1.0}')
BUSY = httpx.Response(503, content=b"busy")


@pytest.mark.anyio
async def test_a_busy_server_is_asked_again(keeping: Recorder) -> None:
    tries = Tries(0)
    asked = asker(in_turn(BUSY, BUSY, GOOD), keeping, retries=2)

    finished, error = await asked.finish(planned(0), ROUTE, tries)

    assert (finished.destination, error) == (Destination.RECORDS, None)
    assert tries.retries == keeping.progress.retries == 2


@pytest.mark.anyio
async def test_retries_end_in_a_failure_record(keeping: Recorder) -> None:
    asked = asker(in_turn(BUSY, BUSY), keeping, retries=1)

    finished, error = await asked.finish(planned(0), ROUTE, Tries(0))

    assert finished.destination is Destination.FAILURES
    assert isinstance(error, GymUnavailableError)
    assert error.status == 503


@pytest.mark.anyio
async def test_a_refusal_is_not_asked_again(keeping: Recorder) -> None:
    asked = asker(in_turn(httpx.Response(422)), keeping, retries=3)

    finished, _ = await asked.finish(planned(0), ROUTE, Tries(0))

    assert finished.failure_class == "agent_run_error"
    assert keeping.progress.retries == 0


@pytest.mark.anyio
async def test_downtime_costs_no_retry(keeping: Recorder) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(str(request.url))

    tries, asked = Tries(0), asker(away, keeping, retries=3)

    with pytest.raises(ServerDownError):
        await asked.finish(planned(0), ROUTE, tries)

    assert tries.retries == 0
    assert asked.gates[ROUTE.url].is_down
    assert keeping.progress.agent("a").is_down
    asked.gates.stop()


@pytest.mark.anyio
async def test_a_server_asking_for_quiet_is_left(keeping: Recorder) -> None:
    quiet = httpx.Response(429, headers={"Retry-After": "7"})
    tries, asked = Tries(0), asker(in_turn(quiet), keeping, retries=1)

    with pytest.raises(ServerDownError):
        await asked.finish(planned(0), ROUTE, tries)

    gate = asked.gates[ROUTE.url]
    assert not gate.is_down
    assert 6 < gate.quiet_seconds <= 7
    assert tries.retries == 1


@pytest.mark.anyio
async def test_a_rollout_fails_at_its_deadline(keeping: Recorder) -> None:
    async def never(request: httpx.Request) -> httpx.Response:
        del request
        await asyncio.sleep(60)
        return GOOD

    asked = asker(never, keeping, rollout_timeout=0.05)  # type: ignore[arg-type]

    finished, error = await asked.finish(planned(0), ROUTE, Tries(0))

    assert error is not None
    assert error.kind == "RolloutTimeout"
    assert finished.failure_class == "agent_request_failed"
    assert keeping.progress.replies_lost == 1
