"""The secrets that this process knows, and texts without them.

Every text from a server passes `redact` before it is written, logged or shown.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from reward_profiling.texts.secret_values import (
    Redactor,
    environment_secrets,
    secret_values,
)

_MOST_CHARACTERS = 262_144
_BEGINNING = 8_192
_LONGEST = 24_576
"""Characters that a secret's look takes at most, and a known one in any spelling."""


class _Known:
    """The secrets so far; those of the environment are known from the start."""

    def __init__(self) -> None:
        self.values = environment_secrets(os.environ)
        self.redactor = Redactor(self.values)


_known = _Known()


def learn(values: Iterable[str]) -> None:
    """Keep in mind secrets that must not be written or shown."""
    more = frozenset(value for value in values if value) - _known.values
    if more:
        _known.values |= more
        _known.redactor = Redactor(_known.values)


def learn_configuration(config: object) -> None:
    """Keep in mind the secrets of a configuration, and nothing else of it."""
    learn(secret_values(config, os.environ))


def redact(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return a text without the secrets that are known, or that look like one.

    A text longer than `most` is cut, and what is beyond costs nothing. A secret across
    the cut would not be known by its first half: more is read, and the end left out.
    """
    said = _known.redactor(text[: most + _LONGEST])
    return said if len(text) <= most + _LONGEST else said[: len(said) - _LONGEST]


def redact_beginning(text: str) -> str:
    """Return the first few thousand characters of a text, redacted: an error's body."""
    return redact(text, _BEGINNING)


def scrub(path: Path) -> None:
    """Take secrets out of a log, which was written by others; line by line."""
    if not path.is_file():
        return
    clean = path.with_name(f".{path.name}.clean")
    redactor, is_changed = _known.redactor, False
    with (
        path.open(encoding="utf-8", errors="surrogateescape", newline="") as log,
        clean.open("w", encoding="utf-8", errors="surrogateescape", newline="") as kept,
    ):
        for line in log:
            said = redactor(line)
            is_changed |= said != line
            kept.write(said)
    if is_changed:
        clean.chmod(path.stat().st_mode & 0o777)
        clean.replace(path)
    else:
        clean.unlink()
