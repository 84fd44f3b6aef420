"""Changes one member of a line of JSON, and no other byte.

Rows are somebody else's data: a number such as 1.10, an escape, a space or the order of
keys may matter to its author, and re-encoding would lose it.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reward_profiling.errors import RecordError

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^,\]}\s]+")
_INSIDE = re.compile(rb'[^"{}\[\]]*')
_OPEN, _CLOSE = b"{[", b"}]"


class Member(NamedTuple):
    """A member of the line's object, by where it stands."""

    name: str
    start: int
    """First byte of the name's opening quote."""
    value: int
    """First byte of the value."""
    end: int
    """One beyond the value's last byte."""


def members(text: bytes) -> list[Member]:
    """Return the members of a JSON object, in order.

    The text must be a valid object; it was parsed before.
    """
    return list(_members(text))


def _members(text: bytes) -> Iterator[Member]:
    place = _skip(text, _skip(text, 0) + 1)
    while text[place : place + 1] == b'"':
        name_end = _end(text, place)
        value = _skip(text, _skip(text, name_end) + 1)
        end = _end(text, value)
        yield Member(json.loads(text[place:name_end]), place, value, end)
        comma = _skip(text, end)
        place = _skip(text, comma + 1)


def _skip(text: bytes, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _end(text: bytes, place: int) -> int:
    """Return where the value that starts at `place` ends."""
    first = text[place : place + 1]
    if first == b'"':
        return _match_end(_STRING, text, place)
    if first not in {b"{", b"["}:
        return _match_end(_SCALAR, text, place)
    depth = 0
    while True:
        here = text[place]
        if here == ord('"'):
            place = _match_end(_STRING, text, place)
        else:
            depth += (here in _OPEN) - (here in _CLOSE)
            place += 1
            if not depth:
                return place
        place = _match_end(_INSIDE, text, place)


def _match_end(pattern: "re.Pattern[bytes]", text: bytes, place: int) -> int:
    found = pattern.match(text, place)
    if found is None:
        raise RecordError(f"is not JSON at byte {place}")
    return found.end()


def without_members(text: bytes, is_dropped: Callable[[str], bool]) -> bytes:
    """Return the line without some of its members; every other byte stays."""
    listed = members(text)
    kept = [member for member in listed if not is_dropped(member.name)]
    if len(kept) == len(listed):
        return text
    if not kept:
        return b"{}"
    inner = b"".join(_with_gap(text, listed, member, kept[0]) for member in kept)
    return text[: listed[0].start] + inner + text[listed[-1].end :]


def _with_gap(
    text: bytes, listed: list[Member], member: Member, first: Member
) -> bytes:
    """Return a member with what stood between it and the one before."""
    own = text[member.start : member.end]
    place = listed.index(member)
    if member == first:
        return own
    return text[listed[place - 1].end : member.start] + own


def with_member(text: bytes, name: str, value: bytes) -> bytes:
    """Return the line with one member set: its value replaced, or the member appended.

    Raises:
        RecordError: the line names the member twice.
    """
    listed = members(text)
    there = [member for member in listed if member.name == name]
    if len(there) > 1:
        raise RecordError(f"names {name!r} twice")
    if there:
        return text[: there[0].value] + value + text[there[0].end :]
    quoted = json.dumps(name, ensure_ascii=False).encode()
    if not listed:
        return b"{" + quoted + b":" + value + b"}"
    last = listed[-1]
    colon = b": " if text[last.value - 1 : last.value] == b" " else b":"
    comma = b", " if colon == b": " else b","
    return text[: last.end] + comma + quoted + colon + value + text[last.end :]
