"""What a task is called where a person looks for it: the beginning of its prompt."""

from collections.abc import Mapping
from typing import Any

_CHARACTERS = 80


def task_label(params: object) -> str | None:
    """Return the beginning of the last message, on one line; None where there is none.

    `params` is the row's `responses_create_params`, whatever it holds.
    """
    given = params.get("input") if isinstance(params, Mapping) else None
    if isinstance(given, list) and given:
        last = given[-1]
        given = last.get("content") if isinstance(last, Mapping) else last
    if isinstance(given, list):
        given = " ".join(_texts(given))
    said = " ".join(given.split()) if isinstance(given, str) else ""
    if len(said) > _CHARACTERS:
        said = said[: _CHARACTERS - 1].rstrip() + "…"
    return said or None


def _texts(parts: list[Any]) -> list[str]:
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return [text for text in texts if isinstance(text, str)]
