"""Stopping in good order, as a process does it."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reward_profiling.stop_scope import Cause, StopScope, helped_by

ROOT = Path(__file__).parents[2]
TOLD = """
import asyncio, os, signal
from reward_profiling.stop_scope import StopScope

async def main():
    told, scope = [], StopScope()
    with scope.hearing_signals(), scope.on_stop(told.append):
        scope.stop_before_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        if {is_sent}:
            os.kill(os.getpid(), signal.SIGTERM)  # the one that was about to come
            await asyncio.sleep(0.1)
        print(len(told), scope.exit_code, flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)
        print("still here", flush=True)

asyncio.run(main())
"""
SEVERAL = """
import asyncio, os, signal, threading
from reward_profiling.stop_scope import StopScope

scope, told, begun = StopScope(), [], threading.Barrier(3)

async def shard(name):
    came = asyncio.Event()
    def ask(cause):
        told.append((name, threading.current_thread().name, cause.reason))
        came.set()
    with scope.on_stop(ask):
        begun.wait()
        await asyncio.wait_for(came.wait(), 10)

async def main():
    with scope.hearing_signals():
        loops = [
            threading.Thread(target=asyncio.run, args=(shard(n),), name=n) for n in "ab"
        ]
        for loop in loops:
            loop.start()
        await asyncio.to_thread(begun.wait)
        os.kill(os.getpid(), signal.SIGTERM)
        for loop in loops:
            await asyncio.to_thread(loop.join)
    print(sorted(told), scope.exit_code)

asyncio.run(main())
"""
TAKEN = """
import asyncio, os, signal
from reward_profiling.stop_scope import StopScope

async def main():
    scope, told = StopScope(), []
    with scope.hearing_signals(), scope.on_stop(told.append):
        signal.signal(signal.SIGTERM, lambda *_: os._exit(9))  # as a library does
        scope.hear_signals_again()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        print(len(told), scope.exit_code)

asyncio.run(main())
"""
ALONE = """
import asyncio, os, signal
from reward_profiling.stop_scope import StopScope

async def main(scope):
    with scope.hearing_signals():
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(5)
        finally:
            print("let go", flush=True)

scope = StopScope()
try:
    asyncio.run(main(scope))
except asyncio.CancelledError:
    print(scope.exit_code)
"""


def ended(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_foreseen_signal_is_no_second_one(*, is_sent: bool) -> None:
    done = ended(TOLD.format(is_sent=is_sent))

    assert (done.stdout, done.returncode) == ("1 143\n", 130), done.stderr


def test_a_signal_asks_in_every_loop() -> None:
    done = ended(SEVERAL)

    said = "the process was told to stop"
    expected = [("a", "a", said), ("b", "b", said)]
    assert done.stdout == f"{expected} 143\n", done.stderr


def test_signals_are_reclaimed_from_libraries() -> None:
    done = ended(TAKEN)

    assert (done.stdout, done.returncode) == ("1 143\n", 0), done.stderr


def test_what_cannot_be_asked_is_cancelled() -> None:
    done = ended(ALONE)

    assert (done.stdout, done.returncode) == ("let go\n130\n", 0), done.stderr


def test_scopes_do_not_stop_each_other() -> None:
    one, other = StopScope(), StopScope()
    told: list[Cause] = []

    with one.may_ask_to_stop(is_failure=False) as stop, other.on_stop(told.append):
        stop("enough")
        assert told == []
        with one.on_stop(told.append):  # what begins later hears of it
            assert told == [Cause("enough", is_failure=False)]
    with one.on_stop(told.append):
        assert len(told) == 1
    assert one.exit_code is None


async def _fail_after(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise ValueError("the helper broke")


async def _for_ever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("helper")


def test_a_helper_that_breaks_ends_the_block() -> None:
    ended: list[str] = []

    async def helped() -> None:
        async with helped_by(_fail_after(0.05), _for_ever(ended)):
            try:
                await asyncio.sleep(30)
            finally:
                ended.append("block")

    started = time.monotonic()
    with pytest.raises(ValueError, match="the helper broke"):
        asyncio.run(helped())

    assert time.monotonic() - started < 5
    assert ended == ["block", "helper"]


def test_two_helpers_that_break_cancel_once() -> None:
    async def helped() -> int:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(ValueError, match="the helper broke"):
            async with helped_by(_fail_after(0.01), _fail_after(0.01)):
                await asyncio.sleep(30)
        return task.cancelling()

    assert asyncio.run(helped()) == 0


def test_helpers_end_with_their_block() -> None:
    ended: list[str] = []

    async def helped() -> int:
        async with helped_by(_for_ever(ended)):
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert asyncio.run(helped()) == 0
    assert ended == ["helper"]


def test_a_helper_that_breaks_at_the_end_is_heard() -> None:
    async def helped() -> None:
        async with helped_by(_fail_after(0)):
            for _ in range(3):
                await asyncio.sleep(0)

    with pytest.raises(ValueError, match="the helper broke"):
        asyncio.run(helped())


def test_the_blocks_own_error_and_cancellation_pass() -> None:
    async def failing() -> None:
        async with helped_by(_for_ever([])):
            raise KeyError("ours")

    async def cancelled() -> None:
        async with helped_by(_for_ever([])):
            await asyncio.sleep(30)

    async def run() -> None:
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pytest.raises(KeyError, match="ours"):
        asyncio.run(failing())
    asyncio.run(run())
