"""A run's summary as lines with styles: printed plainly, or by the terminal's library.

Nothing heavy is imported here, since a small profile takes less time than that would.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.reporting.summary_words import (
    COLUMNS,
    LEGEND,
    agent_cells,
    headline,
    notices,
)


class Styled(NamedTuple):
    """One line."""

    text: str
    style: str = ""
    """Empty, "bold", "dim", "yellow", "bold yellow" or "bold green"."""


def summary_lines(summary: RunSummary, width: int) -> Iterator[Styled]:
    """Yield what is missing first, then a table of the agents."""
    is_whole = not summary.is_partial and not summary.unscored
    yield Styled(headline(summary), "bold green" if is_whole else "bold yellow")
    for notice in notices(summary):
        yield Styled(f"  ! {notice}", "yellow")
    yield Styled("")
    rows = [agent_cells(agent) for agent in summary.agents]
    yield from table_lines(COLUMNS, rows, width)
    for line in wrapped(LEGEND, width - 2):
        yield Styled(f" {line}", "dim")
    yield Styled("")


def file_lines(summary: RunSummary) -> Iterator[Styled]:
    """Yield the files that were written."""
    for path in summary.files:
        yield Styled(f"  {path}", "dim")


def table_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Styled]:
    """Yield a table without frames: names to the left, numbers to the right.

    Nothing is cut. Two spaces are between columns where there is room, else one.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    gap = " " * (2 if sum(widths) + 2 * len(widths) <= width else 1)
    for line in (head, *rows):
        cells = [
            text.ljust(size) if index == 0 else text.rjust(size)
            for index, (text, size) in enumerate(zip(line, widths, strict=True))
        ]
        text = "".join(gap + cell for cell in cells)
        yield Styled(text, "bold" if line is head else "")


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield a text in lines of at most so many characters, broken at spaces."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield line
