"""Help without frames, like every table here: what a command takes, group by group."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from reward_profiling.cli.terminal.lines import StyledLine, labelled_lines
from reward_profiling.cli.terminal.screen import out

if TYPE_CHECKING:  # cyclopts reads them when there is help to show
    from cyclopts.help import HelpEntry, HelpPanel

_BROADEST = 120
"""Longer lines are hard to read."""
_COLUMN = {"command": 15, "parameter": 38}
_SHARE = 3 / 8
"""Of a line that is not broad, for names."""


class HelpPage:
    """Cyclopts' formatter of help; it prints plainly where no terminal is."""

    @property
    def _width(self) -> int:
        return min(out.width, _BROADEST)

    def render_usage(self, *given: object) -> None:
        """Print how a command is called: the last of what is given."""
        out.print(f"Usage: {str(given[-1]).strip()}\n")

    def render_description(self, *given: object) -> None:
        """Print what it is for: the last of what is given."""
        out.show(labelled_lines(StyledLine(""), _plain(given[-1]), self._width))
        out.print()

    def __call__(self, console: object, options: object, panel: "HelpPanel") -> None:
        """Print a group of commands or of options."""
        del console, options  # they are Rich's
        if not panel.entries:
            return
        out.print(str(panel.title), "bold")
        if panel.description:
            said = _plain(panel.description)
            out.show(labelled_lines(StyledLine("  "), said, self._width, "dim"))
        column = min(_COLUMN[panel.format], int(self._width * _SHARE))
        for entry in panel.entries:
            out.show(_lines(entry, column, self._width))
        out.print()


def _lines(entry: "HelpEntry", column: int, width: int) -> Iterator[StyledLine]:
    label = f"  {', '.join(entry.display_labels_with_metavar)}"
    if len(label) > column - 2:
        yield StyledLine("", label=label, label_style="cyan")
        label = ""
    said = [_plain(entry.description)]
    if entry.choices:
        said.append(f"[choices: {', '.join(entry.choices)}]")
    if entry.default is not None:
        said.append(f"[default: {entry.default}]")
    if entry.required:
        said.append("[required]")
    column_of_names = StyledLine(label.ljust(column), "cyan")
    yield from labelled_lines(column_of_names, " ".join(said), width)


def _plain(text: Any) -> str:  # noqa: ANN401 - of cyclopts, around a text of Rich's
    return " ".join(text.primary_renderable.plain.replace("`", "").split())
