"""Stopping in good order when the process is told to: SIGINT and SIGTERM.

A signal cancels the work, so that every `finally` runs: records are flushed and
servers stopped. A second signal ends the process at once.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EXIT_BASE = 128
_received: list[signal.Signals] = []


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Cancel the current asyncio task when a signal comes.

    The event loop calls the handlers, since one that raises wherever the main thread
    happens to be is swallowed by a busy loop. Outside the main thread nothing changes.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: signal.Signals) -> None:
        if _received:
            os._exit(_EXIT_BASE + number)
        _received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def exit_code_of_signal() -> int | None:
    """Return 130 or 143 after a signal stopped the work; None when none did."""
    return _EXIT_BASE + _received[0] if _received else None
