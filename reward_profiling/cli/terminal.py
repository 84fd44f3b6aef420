"""What a person sees in a terminal: tables, a progress bar, errors in plain words."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from reward_profiling.cli import plain_errors
from reward_profiling.cli.insights_view import show_insights
from reward_profiling.cli.summary_lines import (
    Styled,
    file_lines,
    summary_lines,
    table_lines,
)
from reward_profiling.collecting.progress import AgentProgress, Progress
from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.reporting.summary_words import (
    duration,
    mean_so_far,
    progress_line,
    running_mean,
)
from reward_profiling.servers.server_states import Changes, ServerState

out = Console(highlight=False, soft_wrap=True, markup=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

STOPPED = plain_errors.STOPPED

_PLAIN_SECONDS = 5.0
_BAR_WIDTH = 14


def complain(message: str) -> None:
    """Print an error to standard error."""
    err.print(Text("error: ", style="bold red").append(Text(message, style="default")))


def warn(message: str) -> None:
    """Print a warning to standard error."""
    err.print(Text("warning: ", style="yellow").append(Text(message, style="default")))


def option_faults(error: ValidationError) -> str:
    """Say in a line each which options are wrong, as they are written on the line."""
    faults = error.errors(include_url=False)
    deepest: dict[str, int] = {}
    for fault in faults:
        option = _option(fault["loc"])
        deepest[option] = max(deepest.get(option, 0), len(fault["loc"]))
    # Of an option with alternatives, those that fit best so far say what is wrong.
    said = (
        f"{_option(fault['loc'])}{_reason(fault)}{_given(fault['input'])}"
        for fault in faults
        if len(fault["loc"]) == deepest[_option(fault["loc"])]
    )
    return "\n".join(dict.fromkeys(said))


def _option(location: tuple[int | str, ...]) -> str:
    names = [part for part in location if isinstance(part, str) and part.isidentifier()]
    fields = [name for name in names if name not in _GROUPS]
    return f"--{fields[0].replace('_', '-')}: " if fields else ""


def _reason(fault: ErrorDetails) -> str:
    if fault["type"] == "missing" and fault["loc"][-1:] == ("servers",):
        return "give one of --head-url, --gym-config, --gym-resources-server and --demo"
    reason = fault["msg"].removeprefix("Value error, ")
    return reason.replace("a valid dictionary", "a JSON object")


_GROUPS = frozenset({
    "servers", "plan", "adaptive", "collect", "aggregate", "profile", "comparison",
    "spread", "params",
})  # fmt: skip


def _given(value: object) -> str:
    return f" (got {value!r})" if isinstance(value, str | int | float) else ""


def show_summary(summary: RunSummary) -> None:
    """Print a run's summary: what is missing first, then the agents and the files."""
    _show_lines(summary_lines(summary, out.width))
    show_insights(summary, out)
    _show_lines(file_lines(summary))


def _show_lines(lines: Iterable[Styled]) -> None:
    for line in lines:
        out.print(Text(line.text, style=line.style))


def show_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, last_is_prose: bool = False
) -> None:
    """Print a table without frames: names to the left, numbers to the right.

    Nothing is cut, except prose in the last column, which takes what is left of the
    terminal's width.
    """
    if not last_is_prose:
        _show_lines(table_lines(head, rows, out.width))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    widths[-1] = len(head[-1])
    gap = " " * (2 if sum(widths) + 2 * len(widths) <= out.width else 1)
    left = out.width - sum(widths[:-1]) - len(gap) * len(widths)
    for line in (head, *rows):
        cells = [
            text.ljust(width) if index == 0 else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        cells[-1] = _cut(line[-1], left)
        text = "".join(gap + cell for cell in cells)
        out.print(Text(text, style="bold" if line is head else ""))


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return chop_cells(text, max(width - 1, 1))[0] + "…"


class _Shard(NamedTuple):
    bar: TaskID
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
        with Bars(
            TextColumn(" "),
            BarColumn(bar_width=_BAR_WIDTH),
            TextColumn("{task.description}", markup=False),
            console=err,
        ) as self._bars:
            yield

    def say(self, message: str) -> None:
        """Print a sentence about a step."""
        err.print(Text(f"  {message}"))

    def warn(self, message: str) -> None:
        """Print a warning."""
        warn(message)

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
            self._bars.update(bar, description=state.line, total=done, completed=done)
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
            warn(note)
        now = time.monotonic()
        if not any(progress is known for known in self.seen):
            self.seen.append(progress)
        if self._bars is None:
            is_last = progress.left == 0
            if is_last or now - self._told > _PLAIN_SECONDS:
                self._told = now
                err.print(f"  {progress_line(progress, now)}")
            return
        said = _numbers(progress, now)
        shard = self._shards.get(id(progress))
        if shard is None:
            bar = self._bars.add_task(said, total=max(progress.planned, 1))
            # Holding the progress keeps its id from being used again.
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
    if progress.left and left is not None:
        parts.append(f"{progress.rate(now):.3g}/s")
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
