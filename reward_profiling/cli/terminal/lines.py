"""Lines that a command shows: text with a style, tables, paragraphs under a label."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class StyledLine(NamedTuple):
    """One line."""

    text: str
    style: str = ""
    """Empty for plain text, or a style of Rich's, such as "bold yellow"."""
    label: str = ""
    """What stands before the text."""
    label_style: str = ""


def file_lines(paths: Iterable[object]) -> Iterator[StyledLine]:
    """Yield the files that were written."""
    for path in paths:
        yield StyledLine(f"  {path}", "dim")


def labelled_lines(
    label: StyledLine, text: str, width: int, style: str = ""
) -> Iterator[StyledLine]:
    """Yield a paragraph to the right of its label, wrapped to the width.

    The label's text is padded already; it stands before the first line only.
    """
    column = len(label.text)
    wrapped = textwrap.wrap(text, max(width - column, 20), break_on_hyphens=False)
    for index, line in enumerate(wrapped or [""]):
        first, first_style = label[:2] if index == 0 else (" " * column, "")
        yield StyledLine(line, style, first, first_style)


def table_lines(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    last_is_prose: bool = False,
) -> Iterator[StyledLine]:
    """Yield a table without frames: names to the left, numbers to the right.

    Two spaces are between columns where there is room, else one. Nothing is cut, except
    prose in the last column, which takes what is left of the width.
    """
    sizes = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    if last_is_prose:
        sizes[-1] = len(head[-1])
    gap = " " * (2 if sum(sizes) + 2 * len(sizes) <= width else 1)
    left = width - sum(sizes[:-1]) - len(gap) * len(sizes)
    for row in (head, *rows):
        cells = [
            text.ljust(size) if index == 0 else text.rjust(size)
            for index, (text, size) in enumerate(zip(row, sizes, strict=True))
        ]
        if last_is_prose:
            cells[-1] = _cut(row[-1], left)
        text = "".join(gap + cell for cell in cells)
        yield StyledLine(text, "bold" if row is head else "")


def _cut(text: str, width: int) -> str:
    # Rich knows how wide characters are; most tables have no prose to cut.
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415

    if cell_len(text) <= width:
        return text
    return chop_cells(text, max(width - 1, 1))[0] + "…"
