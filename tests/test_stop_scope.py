"""Stopping in good order, as a process does it."""

import subprocess
import sys
from pathlib import Path

import pytest

from reward_profiling.stop_scope import Cause, StopScope

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
