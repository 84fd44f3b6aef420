"""Stopping in good order: for SIGINT and SIGTERM, and when servers are gone for good.

A first signal asks what runs to come to an end: a collection starts nothing more and
the rest of the run goes on with what there is. Where nothing can be asked, the work is
cancelled, so that every `finally` runs. A second signal ends the process at once.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EXIT_BASE = 128
_received: list[int] = []


@dataclass(frozen=True, slots=True)
class Cause:
    """Why what runs is to come to an end."""

    reason: str
    is_failure: bool


_TOLD = Cause("the process was told to stop", is_failure=False)
_standing: list[Cause] = []
_asked: list[Callable[[Cause], None]] = []


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Stop the current asyncio task in good order when a signal comes.

    The event loop calls the handlers, since one that raises wherever the main thread
    happens to be is swallowed by a busy loop. Outside the main thread nothing changes.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int) -> None:
        if _received:
            os._exit(_EXIT_BASE + number)
        _received.append(number)
        if not _asked:
            task.cancel()
        for ask in _asked:
            ask(_TOLD)

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def on_stop(ask: Callable[[Cause], None]) -> Iterator[None]:
    """While the block runs, have a signal call `ask` instead of cancelling the work.

    A cause that stands already is told at once.
    """
    _asked.append(ask)
    try:
        for cause in _standing:
            ask(cause)
        yield
    finally:
        _asked.remove(ask)


@contextmanager
def may_ask_to_stop() -> Iterator[Callable[[str], None]]:
    """Yield a way to end what runs, for a reason that stands until the block ends."""
    mine: list[Cause] = []

    def stop(reason: str) -> None:
        mine.append(cause := Cause(reason, is_failure=True))
        _standing.append(cause)
        for ask in _asked:
            ask(cause)

    try:
        yield stop
    finally:
        for cause in mine:
            _standing.remove(cause)


def exit_code_of_signal() -> int | None:
    """Return 130 or 143 after a signal stopped the work; None when none did."""
    return _EXIT_BASE + _received[0] if _received else None
