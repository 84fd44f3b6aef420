"""The entries of `rollout_infos`, as Gym writes them (`gym-contract.md` §4.5)."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.core import wire
from tasks.core.number_column import (
    BOOL,
    FLOAT,
    INT,
    OTHER,
    NumberColumn,
    gathered,
    positions_of,
)
from tasks.core.record_columns import Layout, NotFinite, RecordColumns

_NUMBERS = frozenset({FLOAT, INT, BOOL})
_KEYS = ("rollout_id", wire.TASK_INDEX, wire.ROLLOUT_INDEX)
_Shape = tuple[int, ...]


class RolloutInfos:
    """Makes the entries of records.

    Records whose members are numbers in the same places get entries of one shape,
    which is worked out once.
    """

    def __init__(self, records: RecordColumns) -> None:
        self._records = records
        self._usage = _with_numbers(records.usage)
        self._own = _with_numbers(records.own)
        self._reward = self._own.pop(wire.REWARD, None) or records.own.get(wire.REWARD)
        self._chosen: dict[_Shape, dict[str, int]] = {}

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the entries of some records."""
        records = self._records
        columns = [*self._usage.values(), *self._own.values()]
        tasks = gathered(records.task, rows)
        rollouts = gathered(records.rollout, rows)
        ids = [f"{task}:{r}" for task, r in zip(tasks, rollouts, strict=True)]
        found = [column.at(rows) for column in columns]
        values = [ids, tasks, rollouts, self._rewards(rows), *found]
        kinds = [self._reward_kinds(rows), *[c.kinds_at(rows) for c in columns]]
        shapes = list(zip(gathered(records.layout, rows), *kinds, strict=True))
        if shapes and shapes.count(shapes[0]) == len(shapes):
            return self._of_shape(shapes[0], values)
        made: list[Any] = [None] * len(rows)
        for shape, places in positions_of(shapes).items():
            chosen = [gathered(column, places) for column in values]
            for place, entry in zip(places, self._of_shape(shape, chosen), strict=True):
                made[place] = entry
        return made

    def _of_shape(
        self, shape: _Shape, values: Sequence[Sequence[Any]]
    ) -> list[dict[str, Any]]:
        """Return the entries of records of one shape; `values` are their columns."""
        chosen = self._chosen.get(shape)
        if chosen is None:
            chosen = self._chosen[shape] = self._choice(shape)
        names = tuple(chosen)
        rows = zip(*[values[at] for at in chosen.values()], strict=True)
        # Comparing lengths that are equal would cost as much again.
        return [dict(zip(names, row)) for row in rows]  # noqa: B905

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


def _with_numbers(columns: Mapping[str, NumberColumn]) -> dict[str, NumberColumn]:
    return {name: column for name, column in columns.items() if column.has_numbers}
