"""A run survives its worker, and can be cancelled from its page without one.

A worker reads the standard error of its runs. If it dies, Prefect's console (Rich)
would end the run's process at the next line of its log. The worker also tells a run
that a person cancelled it, but stops doing so after it lost Prefect's server, and a run
from the command line has no worker. So each run looks at its own state.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console

from reward_profiling.flows.ending import state_in_prefect
from reward_profiling.stop_scope import StopScope
from reward_profiling.tasks.shared.prefect_internals import console_of
from reward_profiling.tasks.shared.present_run import present_run

_LOOK_SECONDS = 5.0


@contextmanager
def outlasting_its_worker() -> Iterator[None]:
    """Let the present run survive its worker while the block runs."""
    _keep_console_from_exiting()
    heeding = asyncio.create_task(_heed_page(present_run().scope, os.getppid()))
    try:
        yield
    finally:
        heeding.cancel()


def _keep_console_from_exiting() -> None:
    for handler in logging.getLogger().handlers:  # Prefect's is one of the root
        if (console := console_of(handler)) is not None:
            # Rich wants a subclass here, but Prefect makes the console.
            console.on_broken_pipe = partial(  # type: ignore[method-assign]
                _fall_silent, console
            )


def _fall_silent(console: Console) -> None:
    console.quiet = True


async def _heed_page(scope: StopScope, worker: int) -> None:
    """Stop this process if a person cancelled or suspended its run.

    A live worker has until the next look to do so itself.
    """
    was_told = False
    while scope.exit_code is None:
        await asyncio.sleep(_LOOK_SECONDS)
        state = await state_in_prefect()
        is_told = state is not None and (
            state.is_cancelling() or state.is_cancelled() or state.is_paused()
        )
        if is_told and (was_told or os.getppid() != worker):
            scope.stop_before_signal(signal.SIGTERM)
        was_told = is_told
