"""What changed between a plan on disk and the plan that a command asks for.

A plan may grow: more repeats, more rows. A planned rollout never changes, since its
record may already be paid for (`design.md`, decision 4).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

_SHOWN_CHARACTERS = 80


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401
    """Yield `path: old → new` for every leaf in which two JSON values differ.

    A name that only one side has shows the other as "(none)".
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in old:
                yield f"{inner}: (none) → {shown(new[name])}"
            elif name not in new:
                yield f"{inner}: {shown(old[name])} → (none)"
            else:
                yield from differences(old[name], new[name], inner)
    elif old != new or type(old) is not type(new):
        yield f"{path}: {shown(old)} → {shown(new)}"


def shown(value: object) -> str:
    """Return a value as JSON, cut to a readable length."""
    text = orjson.dumps(value).decode()
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[:_SHOWN_CHARACTERS] + "…"
