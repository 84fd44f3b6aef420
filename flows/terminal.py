"""What a person sees in a terminal: tables, a progress bar, errors in plain words."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from tasks.core.models import RunSummary
from tasks.core.progress import Progress
from tasks.core.reporting import (
    COLUMNS,
    LEGEND,
    agent_cells,
    duration,
    findings,
    headline,
    mean_so_far,
    progress_line,
)

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

_PLAIN_SECONDS = 5.0


def complain(message: str) -> None:
    """Print an error to standard error."""
    err.print(Text("error: ", style="bold red").append(Text(message, style="default")))


def warn(message: str) -> None:
    """Print a warning to standard error."""
    err.print(Text("warning: ", style="yellow").append(Text(message, style="default")))


def option_faults(error: ValidationError) -> str:
    """Say in a line each which options are wrong, as they are written on the line."""
    faults = dict.fromkeys(
        f"{_option(fault['loc'])}{fault['msg'].removeprefix('Value error, ')}"
        + _given(fault["input"])
        for fault in error.errors(include_url=False)
    )
    return "\n".join(faults)


def _option(location: tuple[int | str, ...]) -> str:
    names = [part for part in location if isinstance(part, str) and part.isidentifier()]
    fields = [name for name in names if name not in _GROUPS]
    return f"--{fields[0].replace('_', '-')}: " if fields else ""


_GROUPS = frozenset({"servers", "plan", "collect", "profile", "params"})


def _given(value: object) -> str:
    return f" (got {value!r})" if isinstance(value, str | int | float) else ""


def show_summary(summary: RunSummary) -> None:
    """Print a run's summary: what is missing first, then the agents and the files."""
    style = "yellow" if summary.is_partial or summary.unscored else "green"
    out.print(Text(headline(summary), style=f"bold {style}"))
    for finding in findings(summary):
        out.print(Text(f"  ! {finding}", style="yellow"))
    out.print()
    out.print(table(COLUMNS, [agent_cells(agent) for agent in summary.agents]))
    out.print(Text(f" {LEGEND}", style="dim"))
    out.print()
    for path in summary.files:
        out.print(Text(f"  {path}", style="dim"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without frames, numbers to the right."""
    shown = Table(box=None, pad_edge=True, header_style="bold", show_edge=False)
    for index, name in enumerate(head):
        shown.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


class _Shard(NamedTuple):
    bar: TaskID
    progress: Progress


class Live:
    """Shows a run as it goes: bars in a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._shards: dict[int, _Shard] = {}
        self._told = 0.0

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show what `watch` hears until the block ends."""
        if not err.is_terminal:
            yield
            return
        with Bars(
            TextColumn("  collect"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=err,
        ) as self._bars:
            yield

    def say(self, message: str) -> None:
        """Print a sentence about a step."""
        err.print(Text(f"  {message}"))

    def warn(self, message: str) -> None:
        """Print a warning."""
        warn(message)

    def watch(self, progress: Progress) -> None:
        """Take a collection's present numbers."""
        now = time.monotonic()
        if self._bars is None:
            is_last = progress.left == 0
            if is_last or now - self._told > _PLAIN_SECONDS:
                self._told = now
                err.print(f"  {progress_line(progress, now)}")
            return
        shard = self._shards.get(id(progress))
        if shard is None:
            bar = self._bars.add_task("", total=max(progress.planned, 1))
            # Holding the progress keeps its id from being used again.
            shard = self._shards[id(progress)] = _Shard(bar, progress)
        self._bars.update(
            shard.bar, completed=progress.done, description=_numbers(progress, now)
        )

    def observe(self, progress: Progress, note: str | None) -> None:
        """Take numbers and a note, where no flow is between."""
        if note is not None:
            warn(note)
        self.watch(progress)


def _numbers(progress: Progress, now: float) -> str:
    parts = [f"{progress.done}/{progress.planned}", mean_so_far(progress)]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    left = progress.seconds_left(now)
    if progress.left and left is not None:
        parts.append(f"{progress.rate(now):.3g}/s")
        parts.append(f"{duration(left)} left")
    return " · ".join(parts)
