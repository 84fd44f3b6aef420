"""What a collected `response` answers, read without building the rest of it.

Two replies with the same text and the same calls have the same digest, whatever their
ids, times and token counts: it tells repeats that were sampled from copies.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, TypedDict

import msgspec

from reward_profiling import wire
from reward_profiling.profiling.records.record_columns import ReplyColumns
from reward_profiling.profiling.rollout_table import (
    NO,
    THOUGHT,
    UNKNOWN,
    YES,
)

_CALL = "_call"
_MESSAGE = "message"
_INCOMPLETE = "incomplete"
_NO_ERROR = re.compile(
    rb"""(?i)"\s*(none|null|no|false|n/a|ok|success|-)?\s*"|\{\s*\}|\[\s*\]"""
)
_THOUGHT_OPENS, _THOUGHT_ENDS = "<think>", "</think>"


class _Other(TypedDict, total=False):
    """An object of no interest here."""


class _OtherList(msgspec.Struct, array_like=True):
    """A list of no interest here."""


_Text = str | int | float | bool | None | _Other | _OtherList


class _Part(TypedDict, total=False):
    text: _Text
    refusal: _Text


class _Item(TypedDict, total=False):
    type: _Text
    name: _Text
    arguments: _Text
    content: str | int | float | bool | list[_Part] | _Other | None


class _Details(TypedDict, total=False):
    reason: _Text


class _Response(TypedDict, total=False):
    error: msgspec.Raw
    output: list[_Item] | str | int | float | bool | _Other | None
    status: _Text
    incomplete_details: _Details | str | int | float | bool | _OtherList | None


_NONE = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    response: _Response | str | int | float | bool | _OtherList | None = None
    reward_components: (
        dict[str, _Text] | list[_Text] | str | int | float | bool | None
    ) = None
    error: msgspec.Raw = _NONE
    error_message: msgspec.Raw = _NONE
    exception: msgspec.Raw = _NONE
    failure_kind: msgspec.Raw = _NONE
    failure_reason: msgspec.Raw = _NONE
    judge_error: msgspec.Raw = _NONE
    verifier_error: msgspec.Raw = _NONE


NOTHING = ReplyColumns(UNKNOWN, UNKNOWN, 0, {})
_DECODE = msgspec.json.Decoder(_Line).decode


def read_reply(line: bytes | memoryview) -> ReplyColumns:
    """Read what the reply of a record's line says; what cannot be read is unknown."""
    try:
        read = _DECODE(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOTHING
    found = read.reward_components
    components = _components(found)
    has_error = int(any(map(_is_error, _errors(read))))
    if not isinstance(read.response, dict):
        return ReplyColumns(UNKNOWN, UNKNOWN, 0, components, has_error)
    truncated = _truncated(read.response)
    output = read.response.get("output")
    if not isinstance(output, list):
        return ReplyColumns(truncated, UNKNOWN, 0, components, has_error)
    said = list(_said(output))
    return ReplyColumns(
        truncated, _emptiness(said), _digest(said), components, has_error
    )


def _errors(read: _Line) -> Iterator[msgspec.Raw]:
    """Yield what a record and its response hold under the names of errors."""
    if isinstance(read.response, dict):
        yield read.response.get("error", _NONE)
    yield from (
        read.error, read.error_message, read.exception, read.failure_kind,
        read.failure_reason, read.judge_error, read.verifier_error,
    )  # fmt: skip


def _is_error(value: msgspec.Raw) -> bool:
    """Say whether a member tells of an error; a number of that name is a metric."""
    said = bytes(value).strip()
    return said[:1] in {b'"', b"{", b"[", b"t"} and not _NO_ERROR.fullmatch(said)


def _emptiness(said: list[str]) -> int:
    """Say whether texts hold an answer: NO, YES, or THOUGHT for thinking alone."""
    if not any(text and not text.isspace() for text in said):
        return YES
    has_answer = any(not _is_only_thought(text) for text in said)
    return NO if has_answer else THOUGHT


def _is_only_thought(text: str) -> bool:
    """Say whether nothing follows what a model thinks, and nothing comes before it.

    A thought may never end, and a chat template may have opened it before the text.
    """
    if _THOUGHT_ENDS in text:
        before, _, after = text.rpartition(_THOUGHT_ENDS)
        text = before.partition(_THOUGHT_OPENS)[0] + after
        if _THOUGHT_OPENS not in before:
            text = after
    return not text.partition(_THOUGHT_OPENS)[0].strip()


def _components(found: object) -> dict[str, Any]:
    """Return the parts of a reward by name; those of a list by their place."""
    if isinstance(found, list):
        return {str(place): value for place, value in enumerate(found)}
    return dict(found) if isinstance(found, dict) else {}


def _said(output: list[_Item]) -> Iterator[str]:
    """Yield an output's texts, and its calls of tools in one text each."""
    for item in output:
        kind = item.get("type")
        if isinstance(kind, str) and kind.endswith(_CALL):
            name, arguments = item.get("name"), item.get("arguments")
            yield f"{kind} {_as_text(name)}\n{_as_text(arguments)}"
        elif kind == _MESSAGE or kind is None:
            yield from _texts(item.get("content"))


def _truncated(reply: _Response) -> int:
    details, status = reply.get(wire.INCOMPLETE_DETAILS), reply.get("status")
    if status == _INCOMPLETE or (isinstance(details, dict) and details.get("reason")):
        return YES
    is_known = isinstance(status, str) or wire.INCOMPLETE_DETAILS in reply
    return NO if is_known else UNKNOWN


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [_as_text(p.get("text")) or _as_text(p.get("refusal")) for p in content]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _digest(said: list[str]) -> int:
    # Lengths first, so that no two lists of texts are joined into one.
    parts = [*(str(len(text)) for text in said), "", *said]
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    found = int.from_bytes(blake2b(joined, digest_size=8).digest(), "big", signed=True)
    return found or 1
