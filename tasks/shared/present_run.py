"""What a run has in its own process besides its parameters, which are only JSON.

Prefect separates the command, the flow and the steps; this object reaches all of them.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Self

from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.stop_scope import StopScope
from reward_profiling.tasks.shared.observer import Nobody, Observer

Report = Callable[[], Awaitable[object]]
"""Puts something on the run's page."""


@dataclass(frozen=True, slots=True)
class PresentRun:
    """The run of this process, made by the command or by the flow.

    A step on a cluster has no run in its process and makes its own.
    """

    observer: Observer = field(default_factory=Nobody)
    scope: StopScope = field(default_factory=StopScope)
    checked: CheckedInput | None = None
    """Its input, if the command has checked it before anything started."""
    owed: list[Report] = field(default_factory=list)
    """Last reports of shards that Prefect's server did not take yet."""

    @contextmanager
    def entered(self) -> Iterator[Self]:
        """Have everything that is called in the block find this run."""
        token = _PRESENT.set(self)
        try:
            yield self
        finally:
            _PRESENT.reset(token)


_PRESENT: ContextVar[PresentRun | None] = ContextVar("present_run", default=None)


def present_run() -> PresentRun:
    """Return the run that the caller is a part of, or a new one outside of any."""
    return _PRESENT.get() or PresentRun()
