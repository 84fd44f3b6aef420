"""Standard output and standard error, as commands print to them.

A terminal gets colours, by Rich; a file or a pipe gets the same lines as plain text,
for which Rich need not be imported.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from reward_profiling.cli.terminal.lines import StyledLine, table_lines
from reward_profiling.texts.visible import visible

if TYPE_CHECKING:
    from rich.console import Console


class Screen:
    """One of the two streams."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _stream(self) -> TextIO | None:
        """The stream; None when it was closed before we came."""
        stream: TextIO | None = getattr(sys, self._name)
        return stream

    @property
    def is_terminal(self) -> bool:
        """Whether what is printed may have colours and move."""
        is_forced = bool(os.environ.get("FORCE_COLOR"))
        return self._stream is not None and (is_forced or self._stream.isatty())

    @property
    def width(self) -> int:
        """Characters of a line; 80 where nothing says it."""
        return shutil.get_terminal_size().columns

    @cached_property
    def console(self) -> "Console":
        """Rich's view of the stream, for what moves."""
        from rich.console import Console  # noqa: PLC0415 - terminals alone need it

        is_error = self._name == "stderr"
        return Console(stderr=is_error, highlight=False, soft_wrap=True, markup=False)

    def print(self, text: str = "", style: str = "") -> None:
        """Print a text."""
        self.show([StyledLine(text, style)])

    def print_table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        last_is_prose: bool = False,
    ) -> None:
        """Print a table."""
        self.show(table_lines(head, rows, self.width, last_is_prose=last_is_prose))

    def show(self, lines: Iterable[StyledLine]) -> None:
        """Print lines; a reader that closes the pipe, such as `head`, ends them.

        Every text that a terminal gets passes here: what comes from servers and files
        must not command it.
        """
        lines = [
            line._replace(text=visible(line.text), label=visible(line.label))
            for line in lines
        ]
        stream = self._stream
        if stream is None:
            return
        try:
            if self.is_terminal:
                self._show_in_colours(lines)
            else:
                stream.writelines(f"{line.label}{line.text}\n" for line in lines)
            stream.flush()
        except OSError as error:
            # Otherwise Python would try to flush the rest at exit, and fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                raise

    def _show_in_colours(self, lines: Iterable[StyledLine]) -> None:
        from rich.text import Text  # noqa: PLC0415 - terminals alone need it

        for line in lines:
            text = Text(line.label, line.label_style)
            self.console.print(text.append(line.text, line.style or "default"))


out = Screen("stdout")
err = Screen("stderr")


def complain(message: str) -> None:
    """Print an error to standard error."""
    err.show([StyledLine(message, label="error: ", label_style="bold red")])


def warn(message: str) -> None:
    """Print a warning to standard error."""
    err.show([StyledLine(message, label="warning: ", label_style="yellow")])
