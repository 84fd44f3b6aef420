"""Numbers and names as the report writes them.

Unknown is a word or a dash, never 0. Text that comes from users' data is cut to a
length that a page can hold, and half surrogate pairs and control characters, which
no page can hold, become U+FFFD.
"""

import math
import re
from collections.abc import Iterable

from reward_profiling.numerics.figures import correlation, figure, percent
from reward_profiling.numerics.uncertainty import Interval

UNKNOWN = "\u2013"
"""What stands in a table where a number is unknown."""

NAME_LENGTH = 60
"""Characters of an agent's or a metric's name that are shown."""

LABEL_LENGTH = 300
"""Characters of a task's label that are shown, and searched."""

SENTENCE_LENGTH = 1000
"""Characters of a finding's sentence that are shown."""

_UNPRINTABLE = re.compile("[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def clean(text: str, length: int) -> str:
    """Return text that a page can hold, of at most `length` characters."""
    shown = _UNPRINTABLE.sub("\ufffd", text[: length + 1])
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def distinct_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shown form of each name; two names never share one."""
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        short = _cut_in_the_middle(clean(name, max(len(name), 1)))
        number = 1
        unique = short
        while unique in taken:
            number += 1
            unique = f"{short} ({number})"
        taken.add(unique)
        shown[name] = unique
    return shown


def _cut_in_the_middle(name: str) -> str:
    """Keep both ends: names of agents often differ in the last letters."""
    if len(name) <= NAME_LENGTH:
        return name or "(no name)"
    half = (NAME_LENGTH - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def number(value: float | None) -> str:
    """Return a number with a typographic minus, or a dash."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return figure(value).replace("-", "\u2212")


def signed(value: float | None) -> str:
    """Return a correlation with its sign."""
    if value is None or not math.isfinite(value):
        return "unknown"
    return correlation(value).replace("-", "\u2212")


def share(value: float | None) -> str:
    """Return a fraction 0..1 in percent, its sign kept on the same line; or a dash."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return percent(value).replace(" %", "\u00a0%")


def interval(bounds: Interval | None) -> str:
    """Return bounds as "low to high", or a dash."""
    if bounds is None or not (math.isfinite(bounds.low) and math.isfinite(bounds.high)):
        return UNKNOWN
    return f"{number(bounds.low)} to {number(bounds.high)}"


def count(value: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it is not one."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def of(part: int, whole: int) -> str:
    """Return "part of whole", with thousands set apart."""
    return f"{part:,} of {whole:,}"


def finite(value: float | None) -> float | None:
    """Return a number that can be drawn; None for one that cannot."""
    return None if value is None or not math.isfinite(value) else value
