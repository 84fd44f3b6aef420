"""Texts from outside, as people may see them: no character in them does anything.

A server's text can hold terminal commands, which clear the screen or write to the
clipboard, and marks that turn the order of the letters around.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tab and line feed
    "\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]"  # order of letters, lines
)


def visible(text: str) -> str:
    r"""Return a text whose control characters are spelled out, such as `\x1b`.

    Line feeds and tabs stay, and so does a carriage return before a line feed.
    """
    return _UNSEEN.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"  # noqa: PLR2004
