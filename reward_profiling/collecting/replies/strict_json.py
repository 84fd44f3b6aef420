"""Replies that are not strict JSON but can be read; what could not be kept is named."""

import json
import math
from typing import Any

import orjson

from reward_profiling.errors import GymRejectedError
from reward_profiling.numerics.number_column import INT64, UINT64_MAX

_SHOWN_BYTES = 262_144
_GLIMPSE, _GLIMPSE_BYTES = 80, 400
_LONGEST_WHOLE_NUMBER = 4000
"""Digits that Python turns into a number without being told to."""


def parsed_object(body: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a reply's object, and what of it strict JSON could not hold.

    Raises:
        GymRejectedError: the body is not JSON, not an object, or nested too deep.
    """
    reply, notes = _parsed(body)
    if not isinstance(reply, dict):
        raise GymRejectedError(
            "the reply is JSON but not an object", kind="NotAnObject", status=200,
            body=text_of(body),
        )  # fmt: skip
    return reply, notes


def _parsed(body: bytes) -> tuple[Any, tuple[str, ...]]:
    try:
        return orjson.loads(body), ()
    except orjson.JSONDecodeError:
        pass  # Python's own parser knows NaN and lone surrogates
    try:
        value = json.loads(
            body.decode("utf-8", "surrogatepass"), parse_int=_whole_number
        )
        notes: list[str] = []
        return _strict(value, "", notes), tuple(notes)
    except (ValueError, RecursionError) as error:
        raise GymRejectedError(
            f"the reply is not JSON: {error}{_beginning(body)}",
            kind=type(error).__name__, status=200,
            body=text_of(body),
        ) from error  # fmt: skip


def _beginning(body: bytes) -> str:
    """Say how a reply begins that cannot be read: often it is a page, or a sentence."""
    words = " ".join(body[:_GLIMPSE_BYTES].decode("utf-8", "replace").split())
    return f'; it begins with "{words[:_GLIMPSE]}"' if words else "; it is empty"


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) <= _LONGEST_WHOLE_NUMBER else float(digits)


def _strict(value: Any, path: str, notes: list[str]) -> Any:  # noqa: ANN401
    """Replace what strict JSON cannot hold, and note where."""
    if isinstance(value, float) and not math.isfinite(value):
        notes.append(f"{path} was {value}, kept as null")
        return None
    if isinstance(value, str):
        return encodable(value, path, notes)
    if isinstance(value, list):
        return [_strict(v, f"{path}[{i}]", notes) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {
            encodable(name, path, notes): _strict(
                inner, f"{path}.{name}" if path else name, notes
            )
            for name, inner in value.items()
        }
    if isinstance(value, int) and not INT64[0] <= value <= UINT64_MAX:
        return _narrowed(value, path, notes)
    return value


def _narrowed(value: int, path: str, notes: list[str]) -> float | None:
    """Give a whole number beyond 64 bits as the float that Gym makes of it."""
    try:
        narrowed = float(value)
    except OverflowError:
        notes.append(f"{path} was a whole number beyond any float, kept as null")
        return None
    notes.append(f"{path} was {value}, kept as a float")
    return narrowed


def encodable(text: str, path: str, notes: list[str]) -> str:
    """Return a text that UTF-8 can hold; note where it could not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        notes.append(
            f"{path} held half a surrogate pair, kept as \N{REPLACEMENT CHARACTER}"
        )
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def text_of(body: bytes) -> str:
    """Return the beginning of a reply's body, which is all that a failure shows."""
    return body[:_SHOWN_BYTES].decode("utf-8", "replace")
