"""The progress of a run: bars in a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from reward_profiling.cli.terminal import screen
from reward_profiling.cli.terminal.screen import err
from reward_profiling.collecting.progress import AgentProgress, Progress
from reward_profiling.numerics.figures import measured
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.summary_words import (
    duration,
    mean_so_far,
    progress_line,
    running_mean,
)
from reward_profiling.servers.server_states import Changes, ServerState
from reward_profiling.texts.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_PLAIN_SECONDS = 5.0
_BAR_WIDTH = 14


class _Shard(NamedTuple):
    bar: "TaskID"
    progress: Progress


class Live:
    """Shows a run as it goes: bars in a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._shards: dict[int, _Shard] = {}
        self._servers: dict[str, TaskID] = {}
        self._changes = Changes()
        self._told = 0.0
        self.seen: list[Progress] = []
        """The collections that were observed."""
        self.summary: RunSummary | None = None
        """What the run came to, once it is known."""

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show what is observed until the block ends."""
        if not err.is_terminal:
            yield
            return
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        with Progress(
            TextColumn(" "),
            BarColumn(bar_width=_BAR_WIDTH),
            TextColumn("{task.description}", markup=False),
            console=err.console,
        ) as self._bars:
            yield

    def say(self, message: str) -> None:
        """Print a sentence about a step."""
        err.print(f"  {message}")

    def warn(self, message: str) -> None:
        """Print a warning."""
        screen.warn(message)

    def observe_servers(self, states: Sequence[ServerState]) -> None:
        """Take the present states of servers that start."""
        if self._bars is None:
            for state in self._changes.of(states):
                self.say(state.line)
            return
        for state in states:
            bar = self._servers.get(state.name)
            if bar is None:
                bar = self._servers[state.name] = self._bars.add_task("", total=None)
            done = 1 if state.is_ready else None
            said = visible(state.line)
            self._bars.update(bar, description=said, total=done, completed=done)
        if all(state.is_ready for state in states):
            self._end_servers(len(states))

    def _end_servers(self, count: int) -> None:
        """Put one line in place of those of the servers, once all are ready."""
        if self._bars is not None and self._servers:
            for bar in self._servers.values():
                self._bars.remove_task(bar)
            self._servers.clear()
            self._bars.refresh()
            self.say(f"all {count} servers are ready")

    def observe(self, progress: Progress, note: str | None) -> None:
        """Take a collection's present numbers, and a warning if there is one."""
        if note is not None:
            self.warn(note)
        now = time.monotonic()
        if not any(progress is known for known in self.seen):
            self.seen.append(progress)
        if self._bars is None:
            is_last = progress.left == 0
            if is_last or now - self._told > _PLAIN_SECONDS:
                self._told = now
                err.print(f"  {progress_line(progress, now)}")
            return
        said = visible(_numbers(progress, now))
        shard = self._shards.get(id(progress))
        if shard is None:
            bar = self._bars.add_task(said, total=max(progress.planned, 1))
            # The dictionary's key is an id: keep the object alive, or Python may
            # give its id to another one.
            shard = self._shards[id(progress)] = _Shard(bar, progress)
        self._bars.update(shard.bar, completed=progress.done, description=said)

    def end(self, summary: RunSummary) -> None:
        """Keep what the run came to."""
        self.summary = summary


def _numbers(progress: Progress, now: float) -> str:
    label = f"{progress.name}: " if progress.name else ""
    parts = [f"{label}{progress.done}/{progress.planned}", mean_so_far(progress)]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.waiting:
        parts.append(f"{progress.waiting} waiting")
    left = progress.seconds_left(now)
    rate = progress.rate(now)
    if progress.left and left is not None and rate is not None:
        parts.append(f"{measured(rate)}/s")
        parts.append(f"{duration(left)} left")
    lines = [" · ".join(parts)]
    if len(progress.agents) > 1 and not progress.name:
        lines += [_agent_line(name, a) for name, a in sorted(progress.agents.items())]
    return "\n".join(lines)


def _agent_line(name: str, agent: AgentProgress) -> str:
    said = f"{name} {agent.done}/{agent.planned}"
    mean = running_mean(agent.rewards)
    down = " · its server does not answer" if agent.is_down else ""
    return f"{said} · {mean}{down}" if mean else f"{said}{down}"
