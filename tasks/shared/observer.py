"""Observers of a run in its own process, besides Prefect: a terminal, or none."""

from collections.abc import Sequence
from typing import Protocol

from reward_profiling.collecting.progress import Progress
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.servers.server_states import ServerState


class Observer(Protocol):
    """Hears of a run; it must return quickly and never raise."""

    def say(self, message: str) -> None:
        """Take a sentence about a step that ended."""

    def warn(self, message: str) -> None:
        """Take a warning."""

    def observe_servers(self, states: Sequence[ServerState]) -> None:
        """Take the present states of servers that start."""

    def observe(self, progress: Progress, note: str | None) -> None:
        """Take the present numbers of a collection, and a warning if there is one."""

    def end(self, summary: RunSummary) -> None:
        """Take the summary of the run."""


class Nobody:
    """Hears nothing."""

    def say(self, message: str) -> None:
        """Ignore it."""

    def warn(self, message: str) -> None:
        """Ignore it."""

    def observe_servers(self, states: Sequence[ServerState]) -> None:
        """Ignore it."""

    def observe(self, progress: Progress, note: str | None) -> None:
        """Ignore it."""

    def end(self, summary: RunSummary) -> None:
        """Ignore it."""
