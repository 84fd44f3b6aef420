"""Records whose members have the same names, in columns."""

from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import Any, NamedTuple

from reward_profiling import wire
from reward_profiling.numerics.number_column import (
    gathered,
    is_constant,
    positions_of,
)

_OBJECT = frozenset({dict})

MemberNames = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of a record's members, and of its usage's, in order."""


class Batch(NamedTuple):
    """Records whose members have the same names, in columns."""

    names: MemberNames
    at: Sequence[int]
    """Where each of them stands among the rows they were taken from."""
    own: Mapping[str, Sequence[Any]]
    """Their members."""
    usage: Mapping[str, Sequence[Any]]
    """The members of their usage."""


def batches_of(rows: Sequence[Mapping[str, Any]]) -> list[Batch]:
    """Put rows together whose members have the same names, in columns."""
    usages = _usages_of(rows)
    own, usage = list(map(tuple, rows)), list(map(tuple, usages))
    if rows and is_constant(own) and is_constant(usage):
        return [_batch((own[0], usage[0]), range(len(rows)), rows, usages)]
    names = list(zip(own, usage, strict=True))
    return [
        _batch(same, at, gathered(rows, at), gathered(usages, at))
        for same, at in positions_of(names).items()
    ]


_NO_USAGE: Mapping[str, Any] = {}
_GET_RESPONSE = methodcaller("get", wire.RESPONSE)
_GET_USAGE = methodcaller("get", wire.USAGE)


def _usages_of(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the usage of each row; an empty one where there is none."""
    responses = list(map(_GET_RESPONSE, rows))
    if not _OBJECT.issuperset(map(type, responses)):
        responses = [found if type(found) is dict else _NO_USAGE for found in responses]
    usages = list(map(_GET_USAGE, responses))
    if not _OBJECT.issuperset(map(type, usages)):
        usages = [found if type(found) is dict else _NO_USAGE for found in usages]
    return usages


def _batch(
    names: MemberNames,
    at: Sequence[int],
    rows: Sequence[Mapping[str, Any]],
    usages: Sequence[Mapping[str, Any]],
) -> Batch:
    own, usage = names
    return Batch(names, at, _in_columns(own, rows), _in_columns(usage, usages))


def _in_columns(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Sequence[Any]]:
    values = zip(*[row.values() for row in rows], strict=True)
    return dict(zip(names, values, strict=True))
