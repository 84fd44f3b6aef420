"""Who watches a run in this process, besides Prefect: a terminal, or nobody."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from reward_profiling.collecting.progress import Progress
from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.servers.server_states import ServerState


class Watcher(Protocol):
    """Hears of a run; it must return quickly and never raise."""

    def say(self, message: str) -> None:
        """Take a sentence about a step that ended."""

    def warn(self, message: str) -> None:
        """Take a sentence that a person should know."""

    def watch_servers(self, states: Sequence[ServerState]) -> None:
        """Take the present states of servers that start."""

    def watch(self, progress: Progress) -> None:
        """Take the present numbers of a collection."""

    def end(self, summary: RunSummary) -> None:
        """Take what the run came to."""


class Nobody:
    """Watches nothing."""

    def say(self, message: str) -> None:
        """Ignore it."""

    def warn(self, message: str) -> None:
        """Ignore it."""

    def watch_servers(self, states: Sequence[ServerState]) -> None:
        """Ignore it."""

    def watch(self, progress: Progress) -> None:
        """Ignore it."""

    def end(self, summary: RunSummary) -> None:
        """Ignore it."""


watcher: ContextVar[Watcher] = ContextVar("watcher", default=Nobody())  # noqa: B039
"""Set by the command line before it runs the flow; inherited by the flow's steps."""
