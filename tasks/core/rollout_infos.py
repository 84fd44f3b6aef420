"""The entries of `rollout_infos`, as Gym writes them (`gym-contract.md` §4.5)."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tasks.core import wire
from tasks.core.number_column import BOOL, FLOAT, INT, OTHER, NumberColumn, gathered
from tasks.core.record_columns import Layout, NotFinite, RecordColumns

_NUMBERS = frozenset({FLOAT, INT, BOOL})
_KEYS = ("rollout_id", wire.TASK_INDEX, wire.ROLLOUT_INDEX)
_Make = Callable[[Sequence[Any]], dict[str, Any]]


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
        self._makers: dict[tuple[int, ...], _Make] = {}

    def at(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the entries of some records."""
        records = self._records
        columns = [*self._usage.values(), *self._own.values()]
        tasks = gathered(records.task, rows)
        rollouts = gathered(records.rollout, rows)
        ids = [f"{task}:{r}" for task, r in zip(tasks, rollouts, strict=True)]
        values = zip(
            ids,
            tasks,
            rollouts,
            self._rewards(rows),
            *[column.at(rows) for column in columns],
            strict=True,
        )
        shapes = zip(
            gathered(records.layout, rows),
            self._reward_kinds(rows),
            *[column.kinds_at(rows) for column in columns],
            strict=True,
        )
        makers = self._makers
        made = []
        for shape, value in zip(shapes, values, strict=True):
            make = makers.get(shape)
            if make is None:
                make = makers[shape] = self._maker(shape)
            made.append(make(value))
        return made

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

    def _maker(self, shape: tuple[int, ...]) -> _Make:
        """Return what makes an entry of the values of a record of this shape."""
        layout = self._records.layouts[shape[0]]
        chosen: dict[str, int] = {name: at for at, name in enumerate(_KEYS)}
        if shape[1]:
            chosen[wire.REWARD] = len(_KEYS)
        start = len(_KEYS) + 1
        places = self._places(layout)
        for name, column in places:
            if shape[2 + column] in _NUMBERS:
                chosen[name] = start + column
        names = tuple(chosen)
        pick = itemgetter(*chosen.values())
        return lambda values: dict(zip(names, pick(values), strict=True))

    def _places(self, layout: Layout) -> list[tuple[str, int]]:
        """Return the number columns in the order in which an entry takes them."""
        usage = {name: at for at, name in enumerate(self._usage)}
        own = {name: at for at, name in enumerate(self._own, len(usage))}
        found = [(name, usage[name]) for name in layout.usage if name in usage]
        return found + [(name, own[name]) for name in layout.own if name in own]


def _with_numbers(columns: Mapping[str, NumberColumn]) -> dict[str, NumberColumn]:
    return {name: column for name, column in columns.items() if column.has_numbers}
