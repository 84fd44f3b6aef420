"""Prompt templates: text with places for a row's own fields.

Places are written as for Python's `str.format`, as Gym fills them: `{question}`,
`{options[0]}`, `{score:.2f}`; `{{` and `}}` are braces. Templates are not trusted: a
place reads members of the row and nothing else. It cannot read attributes of objects.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Annotated, Any

from reward_profiling.errors import RecordError
from reward_profiling.fitting import ReadAs
from reward_profiling.values import Checked

_HEAD = re.compile(r"[^.\[]*")
_MEMBER = re.compile(r"\[([^\]]+)\]")
_TOO_WIDE = re.compile(r"\d{5}")
_CONVERSIONS = (None, "a", "r", "s")
_MOST_SHOWN = 12


def _well_formed(text: object) -> object:
    for place in _places(text) if isinstance(text, str) else ():
        _members(place)
    return text


_Text = Annotated[str, ReadAs(_well_formed)]


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptTemplate(Checked):
    """The messages that a row's fields are put into."""

    user: _Text
    """The user's message; {field} stands for the row's field of that name."""

    system: _Text | None = None
    """The system message before it. Default: none."""

    def messages(self, row: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the messages of one row, the system's first: `role` and `content`.

        Raises:
            RecordError: the row lacks what a place stands for, or cannot be formatted
                as the place asks.
        """
        texts = (("system", self.system), ("user", self.user))
        return [
            {"role": role, "content": _filled(text, row)}
            for role, text in texts
            if text is not None
        ]


def _places(text: str) -> Iterator[str]:
    """Yield the fields of a template's places, also those within format specs.

    Raises:
        ValueError: braces do not match, or a conversion is unknown.
    """
    for _, place, spec, conversion in Formatter().parse(text):
        if place is None:
            continue
        if conversion not in _CONVERSIONS:
            raise ValueError(f"{{{place}!{conversion}}} has an unknown conversion")
        yield place
        yield from _places(spec or "")


def _members(place: str) -> list[str]:
    """Return the field and the members that lead to a place's value.

    Raises:
        ValueError: the place names no field, or reads an attribute.
    """
    head = _HEAD.match(place)
    name = head.group() if head else ""
    if not name or name.isdecimal():
        raise ValueError(
            f"{{{place}}} names no field; write {{field}}, and {{{{ }}}} for braces"
        )
    rest = place[len(name) :]
    if _MEMBER.sub("", rest):
        raise ValueError(
            f"{{{place}}} reads an attribute; write {{{name}[member]}} to read a member"
        )
    return [name, *_MEMBER.findall(rest)]


def _filled(text: str, row: Mapping[str, Any]) -> str:
    try:
        return _Filler().vformat(text, (), row)
    except RecordError:
        raise
    except (ValueError, TypeError) as error:
        raise RecordError(f"cannot fill the prompt template: {error}") from error


class _Filler(Formatter):
    """Fills places with members of JSON values."""

    def get_field(self, field_name: str, _: object, row: Any) -> Any:  # noqa: ANN401
        name, *members = _members(field_name)
        if name not in row:
            raise RecordError(
                f"has no field {name!r} for the prompt template; it has"
                f" {_listed(list(row))}"
            )
        value = row[name]
        for member in members:
            value = _member(value, member, field_name)
        return value, name

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401
        if _TOO_WIDE.search(format_spec):
            # A row may set the width itself, and a huge one would fill the memory.
            raise RecordError(f"asks for a width or precision of {format_spec!r}")
        return format(value, format_spec)


def _member(value: object, member: str, place: str) -> object:
    found = False
    if isinstance(value, Mapping):
        found = member in value
        value = value.get(member)
    elif isinstance(value, list | str) and member.isdecimal():
        found = int(member) < len(value)
        value = value[int(member)] if found else None
    if not found:
        raise RecordError(f"has no {{{place}}} for the prompt template: no [{member}]")
    return value


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN]) or "none"
    return shown + " …" * (len(names) > _MOST_SHOWN)
