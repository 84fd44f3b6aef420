"""What was given for a field, read and held to what the field's type says.

A type is one of Python's own (bool, int, float, str, Path, and a list, tuple, dict,
choice or union of them), or a class that makes itself of an object's members. Beside
it may stand bounds of `annotated_types`, and `ReadAs`. Numbers and objects
may be given as text, as the command line has them.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How a field is read that has a spelling of its own, such as "15m"."""

    read: Callable[[object], object]
    """Raises ValueError, with the reason, for what it cannot read."""

    pattern: str | None = None
    """Regular expression that Prefect's form holds such text to."""

    def __get_pydantic_json_schema__(
        self, schema: object, handler: Callable[[object], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the JSON schema of such a field."""
        spelling = {} if self.pattern is None else {"pattern": self.pattern}
        return {**handler(schema), **spelling}


class UnfitError(ValueError):
    """What was given does not fit; the reason goes on where the field's name ends."""

    def __init__(self, reason: str, *, is_told: bool = False) -> None:
        super().__init__(reason)
        self.is_told = is_told
        """Whether the reason says what was given."""


def matching_text(pattern: str, like: str) -> ReadAs:
    """Take text that matches a regular expression; `like` says the same in words."""

    def read(given: object) -> object:
        if isinstance(given, str) and not re.fullmatch(pattern, given):
            raise UnfitError(f" must be {like}")
        return given

    return ReadAs(read, pattern)


def fitted(hint: Any, given: Any) -> Any:  # noqa: ANN401
    """Return what was given as a type has it.

    Raises:
        UnfitError: it does not fit.
    """
    origin = get_origin(hint)
    if origin is not None:
        return _OF_PARTS[origin](get_args(hint), given)
    if hint in _PLAIN:
        return _PLAIN[hint](given)
    return given if isinstance(given, hint) else hint.made(_object(given))


def _bounded(parts: tuple[Any, ...], given: Any) -> Any:  # noqa: ANN401
    hint, *limits = parts
    try:
        for limit in limits:
            if isinstance(limit, ReadAs):
                given = limit.read(given)
    except UnfitError:
        raise
    except ValueError as error:
        raise UnfitError(f": {error}", is_told=True) from error
    value = fitted(hint, given)
    for limit in limits:
        if reason := _reason(limit, value):
            raise UnfitError(reason, is_told=True)
    return value


def _reason(limit: object, value: Any) -> str | None:  # noqa: ANN401
    """Say why a value is out of a limit; None where it is not."""
    match limit:
        case Ge(ge=bound) if value < bound:
            return f" must be at least {bound} (got {value})"
        case Gt(gt=bound) if value <= bound:
            return f" must be more than {bound} (got {value})"
        case Le(le=bound) if value > bound:
            return f" must be at most {bound} (got {value})"
        case Lt(lt=bound) if value >= bound:
            return f" must be less than {bound} (got {value})"
        case MinLen() if not value:
            return " must not be empty"
    return None


def _one_of(hints: tuple[Any, ...], given: Any) -> Any:  # noqa: ANN401
    """Read as the one type of a union that fits an object, or anything else."""
    others = [hint for hint in hints if hint is not NoneType]
    is_null = given is None or (given == "null" and not any(map(_is_text, others)))
    if is_null and NoneType in hints:
        return None
    is_object = isinstance(given, Mapping) or _is_json_object(given)
    fitting = [hint for hint in others if (get_origin(hint) is dict) == is_object]
    return fitted((fitting or others)[0], given)


def _is_text(hint: Any) -> bool:  # noqa: ANN401
    """Say whether a type takes any text, so that "null" is one."""
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return bare in {str, Path}


def _choice(choices: tuple[Any, ...], given: Any) -> Any:  # noqa: ANN401
    if given in choices:
        return given
    *first, last = map(repr, choices)
    raise UnfitError(f" must be {', '.join(first)} or {last}")


def _members(hints: tuple[Any, ...], given: object) -> dict[str, Any]:
    return {
        name: _part(hints[1], member, name) for name, member in _object(given).items()
    }


def _items(hints: tuple[Any, ...], given: object) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise UnfitError(" must be a list")
    return [_part(hints[0], item, place) for place, item in enumerate(given)]


def _part(hint: Any, given: object, place: str | int) -> Any:  # noqa: ANN401
    try:
        return fitted(hint, given)
    except UnfitError as error:
        raise UnfitError(f"[{place!r}]{error}", is_told=error.is_told) from error


def _object(given: object) -> Mapping[str, Any]:
    if _is_json_object(given):
        import json  # noqa: PLC0415 - few options are objects

        with suppress(ValueError):
            given = json.loads(given)
    if not isinstance(given, Mapping):
        raise UnfitError(" must be a JSON object")
    return given


def _is_json_object(given: object) -> TypeGuard[str]:
    return isinstance(given, str) and given.lstrip().startswith("{")


def _bool(given: object) -> bool:
    if not isinstance(given, bool):
        raise UnfitError(" must be true or false")
    return given


def _int(given: Any) -> int:  # noqa: ANN401
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(given, bool) and int(given) == float(given):
            return int(given)
    raise UnfitError(" must be a whole number")


def _float(given: Any) -> float:  # noqa: ANN401
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(given, bool) and math.isfinite(float(given)):
            return float(given)
    raise UnfitError(" must be a finite number")


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise UnfitError(" must be text")
    return given


def _path(given: object) -> Path:
    if not isinstance(given, str | Path):
        raise UnfitError(" must be a path")
    return Path(given)


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    Any: lambda given: given,
    bool: _bool,
    int: _int,
    float: _float,
    str: _text,
    Path: _path,
}
_OF_PARTS: dict[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    Annotated: _bounded,
    Literal: _choice,
    Union: _one_of,
    UnionType: _one_of,
    dict: _members,
    list: _items,
    tuple: lambda hints, given: tuple(_items(hints, given)),
}
"""By what a type is made of; `tuple` is that of any length, of one type."""
