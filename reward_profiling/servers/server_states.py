"""States of starting servers, in the order they were named."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

READY = "ready"
STARTING = "starting"
FAILED = "failed"


class ServerState(NamedTuple):
    """One server, while it starts."""

    name: str
    """Its instance name, or what it is."""
    state: str
    """What it does: `starting`, `ready`, `failed`, or what it waits for."""
    seconds: float
    """Since the start; of a ready server, when it became ready."""

    @property
    def is_ready(self) -> bool:
        """Whether it answers for its health."""
        return self.state == READY

    @property
    def line(self) -> str:
        """A line about it, such as `mcqa: ready after 14 s`."""
        so_far = f"after {self.seconds:.0f} s" if self.is_ready else ""
        return f"{self.name}: {self.state} {so_far or f'({self.seconds:.0f} s)'}"


ObserveServers = Callable[[Sequence[ServerState]], None]
"""Hears of the states again and again; it must return quickly and never raise."""


class Changes:
    """Tells apart what is new: each state of each server once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, states: Sequence[ServerState]) -> list[ServerState]:
        """Return the states that were not there before."""
        new = [s for s in states if self._known.get(s.name) != s.state]
        self._known |= {state.name: state.state for state in new}
        return new
