"""The entries of `rollout_infos`, as Gym writes them (`gym-contract.md` §4.5)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.numerics.index_column import Index
from reward_profiling.numerics.number_column import (
    BOOL,
    FLOAT,
    INT,
    OTHER,
    NumberColumn,
    gathered,
    is_constant,
    positions_of,
)
from reward_profiling.profiling.records.layouts import Layout
from reward_profiling.profiling.records.record_columns import NotFinite, RecordColumns

_NUMBERS = frozenset({FLOAT, INT, BOOL})
_KEYS = ("rollout_id", wire.TASK_INDEX, wire.ROLLOUT_INDEX)
_Shape = tuple[int, ...]
"""The number of a record's layout, and the kinds of its reward and its numbers."""
_HAVE_NO_COMMA = frozenset({int, float, bool, type(None)})


class RolloutInfos:
    """Makes the entries of records, as JSON.

    Records whose members are numbers in the same places get entries of one shape,
    which is worked out once.
    """

    def __init__(self, records: RecordColumns) -> None:
        self._records = records
        self._usage = _with_numbers(records.usage)
        self._own = _with_numbers(records.own)
        self._reward = self._own.pop(wire.REWARD, None) or records.own.get(wire.REWARD)
        self._chosen: dict[_Shape, dict[str, int]] = {}

    def at(self, rows: Sequence[int]) -> list[str]:
        """Return the entries of some records."""
        records = self._records
        columns = [*self._usage.values(), *self._own.values()]
        tasks = gathered(records.task, rows)
        rollouts = gathered(records.rollout, rows)
        found = [column.at(rows) for column in columns]
        values = [tasks, rollouts, self._rewards(rows), *found]
        texts = [_ids(tasks, rollouts), *map(_json_texts, values)]
        kinds = [self._reward_kinds(rows), *[c.kinds_at(rows) for c in columns]]
        shapes = _shapes([gathered(records.layout, rows), *kinds])
        if len(shapes) == 1:
            return list(self._of_shape(next(iter(shapes)), texts))
        made = [""] * len(rows)
        for shape, places in shapes.items():
            chosen = [gathered(column, places) for column in texts]
            for place, entry in zip(places, self._of_shape(shape, chosen), strict=True):
                made[place] = entry
        return made

    def _of_shape(self, shape: _Shape, texts: Sequence[Sequence[str]]) -> Iterable[str]:
        """Return the entries of records of one shape; `texts` are their columns."""
        chosen = self._chosen.get(shape)
        if chosen is None:
            chosen = self._chosen[shape] = self._choice(shape)
        parts: list[Iterable[str]] = []
        for name, at in chosen.items():
            lead = "," if parts else "{"
            parts += repeat(f"{lead}{_json(name)}:"), texts[at]
        parts.append(repeat("}"))
        # One of them ends first: the endless ones are the same in all rows.
        return map("".join, zip(*parts))  # noqa: B905

    def _rewards(self, rows: Sequence[int]) -> Sequence[Any]:
        if self._reward is None:
            return [None] * len(rows)
        found: list[Any] = self._reward.at(rows)
        kinds = self._reward.kinds_at(rows)
        if BOOL in kinds:
            pairs = zip(found, kinds, strict=True)
            found = [bool(v) if kind == BOOL else v for v, kind in pairs]
        if OTHER in kinds:
            triples = zip(found, kinds, rows, strict=True)
            found = [self._raw(r) if kind == OTHER else v for v, kind, r in triples]
        return found

    def _raw(self, row: int) -> Any:  # noqa: ANN401 - whatever JSON has
        value = self._records.raw_rewards.get(row)
        return None if isinstance(value, NotFinite) else value

    def _reward_kinds(self, rows: Sequence[int]) -> bytes:
        if self._reward is None:
            return bytes(len(rows))
        return self._reward.kinds_at(rows)

    def _choice(self, shape: _Shape) -> dict[str, int]:
        """Return an entry's names, in order, and the column of values of each."""
        layout = self._records.layouts[shape[0]]
        chosen: dict[str, int] = {name: at for at, name in enumerate(_KEYS)}
        if shape[1]:
            chosen[wire.REWARD] = len(_KEYS)
        start = len(_KEYS) + 1
        for name, column in self._places(layout):
            if shape[2 + column] in _NUMBERS:
                chosen[name] = start + column
        return chosen

    def _places(self, layout: Layout) -> list[tuple[str, int]]:
        """Return the number columns in the order in which an entry takes them."""
        usage = {name: at for at, name in enumerate(self._usage)}
        own = {name: at for at, name in enumerate(self._own, len(usage))}
        found = [(name, usage[name]) for name in layout.usage if name in usage]
        return found + [(name, own[name]) for name in layout.own if name in own]


def _shapes(columns: Sequence[Sequence[int]]) -> Mapping[_Shape, Sequence[int]]:
    """Return the places of each shape, whose numbers stand in the columns."""
    first = tuple(column[0] for column in columns)
    varied = [at for at, column in enumerate(columns) if not is_constant(column)]
    if not varied:
        return {first: range(len(columns[0]))}
    found = {}
    shapes = list(zip(*[columns[at] for at in varied], strict=True))
    for kinds, places in positions_of(shapes).items():
        shape = list(first)
        for at, kind in zip(varied, kinds, strict=True):
            shape[at] = kind
        found[tuple(shape)] = places
    return found


def _ids(tasks: Sequence[Index], rollouts: Sequence[Index]) -> Sequence[str]:
    pairs = zip(tasks, rollouts, strict=True)
    if isinstance(tasks, list) or isinstance(rollouts, list):  # one of them is text
        return [_json(f"{task}:{rollout}") for task, rollout in pairs]
    return [f'"{task}:{rollout}"' for task, rollout in pairs]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _json_texts(values: Sequence[Any]) -> Sequence[str]:
    """Return each value as JSON."""
    if _HAVE_NO_COMMA.issuperset(map(type, values)):
        return _json(list(values))[1:-1].split(",")
    return list(map(_json, values))


def _with_numbers(columns: Mapping[str, NumberColumn]) -> dict[str, NumberColumn]:
    return {name: column for name, column in columns.items() if column.has_numbers}
