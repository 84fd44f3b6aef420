"""Stopping in good order: for signals, and when servers are gone for good.

A first signal asks what runs to come to an end: a collection starts nothing more and
the rest of the run goes on with what there is. Where nothing can be asked, the work is
cancelled, so that every `finally` runs. A second signal ends the process at once.
"""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXIT_BASE = 128


@dataclass(frozen=True, slots=True)
class Cause:
    """Why what runs is to come to an end."""

    reason: str
    is_failure: bool


_TOLD = Cause("the process was told to stop", is_failure=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who can be asked to stop, and the event loop that it runs in."""

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


class _Helpers:
    """Tasks beside one that they help; it is cancelled when one of them fails."""

    def __init__(self, works: Iterable[Coroutine[Any, Any, object]]) -> None:
        self.errors: list[BaseException] = []
        self._helped = asyncio.current_task()
        self._tasks = [asyncio.create_task(work) for work in works]
        for task in self._tasks:
            task.add_done_callback(self._heed)

    def _heed(self, task: asyncio.Task[object]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        self.errors.append(error)
        if self._helped is not None and len(self.errors) == 1:  # undone once, too
            self._helped.cancel()

    async def end(self) -> None:
        """Cancel them and wait until they are gone; a later failure is not heard."""
        if self.errors and self._helped is not None:
            self._helped.uncancel()
        for task in self._tasks:
            task.remove_done_callback(self._heed)
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def helped_by(*works: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run helpers beside the block, which ends with the error of one that fails.

    A helper that nobody hears of would leave the block without what it cares for: a
    watch over servers, a sign of life, a limit of time.
    """
    helpers = _Helpers(works)
    try:
        yield
    except asyncio.CancelledError:
        if not helpers.errors:
            raise
    finally:
        await helpers.end()
    if helpers.errors:
        raise helpers.errors[0]


class StopScope:
    """What can end one run, or one command, and who in it is asked to stop.

    Whoever begins the run makes it and hands it down. Nothing of it belongs to the
    process, which may have several: a worker of a cluster collects several shards.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._foreseen: int | None = None
        self._asked: list[_Asked] = []
        self._standing: list[Cause] = []
        self._hear: Callable[[], None] = lambda: None

    @property
    def exit_code(self) -> int | None:
        """129, 130 or 143 after a signal stopped the work; None when none did."""
        return None if self._received is None else _EXIT_BASE + self._received

    @contextmanager
    def hearing_signals(self) -> Iterator[None]:
        """Stop the current asyncio task in good order when a signal comes.

        The event loop calls the handlers, since one that raises wherever the main
        thread happens to be is swallowed by a busy loop. Outside the main thread
        nothing changes.
        """
        task = asyncio.current_task()
        if task is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, before = asyncio.get_running_loop(), self._hear
        # Whoever started us by `nohup` wants the end of the terminal ignored.
        is_deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        heard = [one for one in _SIGNALS if one != signal.SIGHUP or not is_deaf]

        def hear() -> None:
            for number in heard:
                loop.add_signal_handler(number, self._stop, number, task)

        hear()
        self._hear = hear
        try:
            yield
        finally:
            self._hear = before
            for number in heard:
                loop.remove_signal_handler(number)

    def hear_signals_again(self) -> None:
        """Take the signals back from a library with handlers of its own; Ray's kill.

        Called in the event loop of a block that hears signals; else nothing changes.
        """
        self._hear()

    def stop_before_signal(self, number: signal.Signals) -> None:
        """Stop as by a signal that a worker may be about to send.

        When it comes, it is no second one; another signal is.
        """
        if self._received is None:
            self._foreseen = number
            os.kill(os.getpid(), number)

    def _stop(self, number: int, task: asyncio.Task[object]) -> None:
        if self._received is not None and number == self._foreseen:
            self._foreseen = None
            return
        if self._received is not None:
            os._exit(_EXIT_BASE + number)
        self._received = number
        if not self._asked:
            task.cancel()
        self._tell(_TOLD)

    def _tell(self, cause: Cause) -> None:
        for asked in tuple(self._asked):  # one in another thread may end meanwhile
            asked(cause)

    @contextmanager
    def on_stop(self, ask: Callable[[Cause], None]) -> Iterator[None]:
        """While the block runs, have a stop call `ask` instead of cancelling the work.

        It is called in this thread's event loop, and at once for a cause that stands
        already.
        """
        asked = _Asked(ask, _loop())
        self._asked.append(asked)
        try:
            for cause in self._standing:
                ask(cause)
            yield
        finally:
            self._asked.remove(asked)

    @contextmanager
    def may_ask_to_stop(
        self, *, is_failure: bool = True
    ) -> Iterator[Callable[[str], None]]:
        """Yield a way to end what runs; its reason stands until the block ends."""
        mine: list[Cause] = []

        def stop(reason: str) -> None:
            cause = Cause(reason, is_failure=is_failure)
            mine.append(cause)
            self._standing.append(cause)
            self._tell(cause)

        try:
            yield stop
        finally:
            for cause in mine:
                self._standing.remove(cause)
