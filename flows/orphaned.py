"""A run whose worker was killed: it goes on, and is cancelled as before.

A worker reads what its runs write to their standard error, and shows it. When nobody
does, Prefect's console, which is Rich's, would end the process at its next line. And it
is the worker that tells a run that a person cancelled it.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from prefect.logging.handlers import PrefectConsoleHandler
from rich.console import Console

from flows.ending import is_being_cancelled
from tasks.operations.stopping import exit_code_of_signal

_LOOK_SECONDS = 5.0


@contextmanager
def outlasting_its_worker() -> Iterator[None]:
    """Have the present run outlast its worker while the block runs."""
    _keep_console_from_exiting()
    heeding = asyncio.create_task(_heed_cancellation(os.getppid()))
    try:
        yield
    finally:
        heeding.cancel()


def _keep_console_from_exiting() -> None:
    for handler in logging.getLogger().handlers:  # Prefect's is one of the root
        if isinstance(handler, PrefectConsoleHandler):
            # Rich asks for a subclass, but the console is made by Prefect.
            handler.console.on_broken_pipe = partial(  # type: ignore[method-assign]
                _fall_silent, handler.console
            )


def _fall_silent(console: Console) -> None:
    console.quiet = True


async def _heed_cancellation(worker: int) -> None:
    """Stop this process as its worker would, once there is none to do it.

    A worker that lives is not forestalled: a second signal ends a run at once.
    """
    while exit_code_of_signal() is None:
        await asyncio.sleep(_LOOK_SECONDS)
        if os.getppid() == worker or not await is_being_cancelled():
            continue
        if exit_code_of_signal() is None:
            os.kill(os.getpid(), signal.SIGTERM)
