"""Stopping in good order, as a process does it."""

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_signal_that_was_foreseen_is_no_second_one_and_another_is(
    *, is_sent: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOLD.format(is_sent=is_sent)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.stdout, done.returncode) == ("1 143\n", 130), done.stderr
