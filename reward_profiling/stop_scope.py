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
_announced: list[int] = []
_hearing: list[Callable[[], None]] = []


@dataclass(frozen=True, slots=True)
class Cause:
    """Why what runs is to come to an end."""

    reason: str
    is_failure: bool


_TOLD = Cause("the process was told to stop", is_failure=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who can be asked to stop, and the event loop that it runs in.

    A worker of a cluster has several shards in one process, each with its own loop.
    """

    ask: Callable[[Cause], None]
    loop: asyncio.AbstractEventLoop | None

    def __call__(self, cause: Cause) -> None:
        if self.loop is None or self.loop is _loop():
            self.ask(cause)
        else:
            self.loop.call_soon_threadsafe(self.ask, cause)


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_standing: list[tuple[Cause, asyncio.AbstractEventLoop | None]] = []
_asked: list[_Asked] = []


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
    loop = asyncio.get_running_loop()

    def hear() -> None:
        for number in _SIGNALS:
            loop.add_signal_handler(number, _stop, number, task)

    hear()
    _hearing.append(hear)
    try:
        yield
    finally:
        _hearing.remove(hear)
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def stop_before_signal(number: signal.Signals) -> None:
    """Stop as by a signal that a worker may be about to send.

    When it comes, it is no second one; another signal is.
    """
    if not _received:
        _announced.append(number)
        os.kill(os.getpid(), number)


def _stop(number: int, task: asyncio.Task[object]) -> None:
    if _received and number in _announced:
        _announced.clear()
        return
    if _received:
        os._exit(_EXIT_BASE + number)
    _received.append(number)
    if not _asked:
        task.cancel()
    for asked in _asked:
        asked(_TOLD)


def hear_signals_again() -> None:
    """Take the signals back from a library that set handlers of its own; Ray's kills.

    Called in the event loop of a block that stops on signals; else nothing changes.
    """
    for hear in _hearing:
        hear()


@contextmanager
def on_stop(ask: Callable[[Cause], None]) -> Iterator[None]:
    """While the block runs, have a signal call `ask` instead of cancelling the work.

    A cause that stands already in this event loop is told at once.
    """
    asked = _Asked(ask, _loop())
    _asked.append(asked)
    try:
        for cause, loop in _standing:
            if loop is asked.loop:
                ask(cause)
        yield
    finally:
        _asked.remove(asked)


@contextmanager
def may_ask_to_stop(*, is_failure: bool = True) -> Iterator[Callable[[str], None]]:
    """Yield a way to end what runs in this event loop.

    The reason that is given stands until the block ends.
    """
    mine: list[tuple[Cause, asyncio.AbstractEventLoop | None]] = []

    def stop(reason: str) -> None:
        cause, loop = Cause(reason, is_failure=is_failure), _loop()
        mine.append((cause, loop))
        _standing.append((cause, loop))
        for asked in _asked:
            if asked.loop is loop:
                asked(cause)

    try:
        yield stop
    finally:
        for standing in mine:
            _standing.remove(standing)


def exit_code_of_signal() -> int | None:
    """Return 130 or 143 after a signal stopped the work; None when none did."""
    return _EXIT_BASE + _received[0] if _received else None
