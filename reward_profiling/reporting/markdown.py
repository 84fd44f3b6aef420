"""Texts in Markdown, as Prefect's pages show them: nothing in them is markup or a link.

Prefect renders descriptions, tables and texts of artifacts; an image in one would be
fetched from its own host when the page is opened. Source: CommonMark 0.31, §2.4 and
§6.1, and GitHub's autolinks.
"""

import re

from reward_profiling.texts.visible import visible

_MARKS = re.compile(
    r"[\\`*<>\[\]|~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is no mark
    r"|!(?=\[)"
    r"|&(?=#?\w+;)"
    r"|:(?=//)|(?<=\w)@(?=\w)|(?<=\bwww)\."  # what would become a link by itself
    r"|(?m:^(\s*)(\#|(?:[+-]|\d+[.)])(?=\s|$)|[=-]+(?=\s*$)))",  # a block's begin
    re.IGNORECASE,
)


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKS.sub(_escape, visible(text))


def _escape(found: re.Match[str]) -> str:
    mark = found[2]
    if mark is None:
        return f"\\{found[0]}"
    return f"{found[1]}{mark[:-1]}\\{mark[-1]}"


def code(text: str) -> str:
    """Return a text as code; its own backticks do not end it."""
    shown = " ".join(visible(text).split())
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}" if shown else ""
