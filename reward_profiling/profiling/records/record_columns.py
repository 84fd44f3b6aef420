"""The collected records of a run, in columns: what profiling keeps of them.

Rows stand in any order; `file` and `line` say where each was read. What Gym counts as
a number, and in which order, is `gym-contract.md` §4.2 and §4.5.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from reward_profiling import wire
from reward_profiling.numerics.index_column import Index, joined_index
from reward_profiling.numerics.number_column import (
    NumberColumn,
    gathered,
    packed,
    rearranged,
)
from reward_profiling.profiling.records.layouts import Layout
from reward_profiling.profiling.records.record_batches import (
    Batch,
    MemberNames,
    batches_of,
)

_MOST_KNOWN_NAMES = 4_096
_TRIED_LAYOUTS = 8
_NUMBERS = frozenset({int, float, bool})
_NO_METRICS = frozenset({wire.RESPONSE, wire.MASK_SAMPLE})


class ReplyColumns(NamedTuple):
    """What is kept of what a reply says."""

    truncated: int
    """Whether the reply was cut off: NO, YES or UNKNOWN."""
    empty: int
    """Whether it holds neither text nor a call of a tool: NO, YES, UNKNOWN, or THOUGHT
    where it holds nothing but thinking."""
    digest: int
    """64 bits of its text and calls; 0 where there is no output to read."""
    components: Mapping[str, Any]
    """Members of the record's `reward_components`."""
    has_error: int = 0
    """Whether the record or its response holds an error beside the reward, 0 or 1."""


class NotFinite(Enum):
    """A reward that some writers put into JSON although it is not finite."""

    NAN = "NaN"
    INFINITE = "not finite"


class RecordColumns(msgspec.Struct):
    """All records of a run; every column has one entry per record."""

    task: Any = msgspec.field(default_factory=lambda: array("q"))
    """Task index: an array of ints, or a list where one is text."""
    rollout: Any = msgspec.field(default_factory=lambda: array("q"))
    """Rollout index, likewise."""
    file: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    """Which of the files that were read."""
    line: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """1-based line in that file."""
    masked: bytearray = msgspec.field(default_factory=bytearray)
    layout: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    """Position in `layouts`."""
    layouts: list[Layout] = msgspec.field(default_factory=list)
    own: dict[str, NumberColumn] = msgspec.field(default_factory=dict)
    """Members of the records themselves."""
    usage: dict[str, NumberColumn] = msgspec.field(default_factory=dict)
    """Members of their `response.usage`."""
    raw_rewards: dict[int, Any] = msgspec.field(default_factory=dict)
    """Rewards that are no numbers, by row: null, text, a list, an object."""
    strays: dict[int, str] = msgspec.field(default_factory=dict)
    """Class of rows that are failures, strayed into a file of records."""
    truncated: bytearray = msgspec.field(default_factory=bytearray)
    """Whether the reply was cut off; empty where replies were not read."""
    empty: bytearray = msgspec.field(default_factory=bytearray)
    """Whether the reply holds neither text nor a call of a tool; likewise."""
    has_error: bytearray = msgspec.field(default_factory=bytearray)
    """Whether there is an error beside the reward; likewise."""
    answer: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """Digest of the reply's text and calls, 0 where unknown; likewise."""
    components: dict[str, NumberColumn] = msgspec.field(default_factory=dict)
    """Members of `reward_components`; likewise."""
    _known: dict[MemberNames, int] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.masked)

    def extend(
        self,
        rows: Sequence[Mapping[str, Any]],
        file: int,
        lines: Sequence[int],
        replies: Sequence[ReplyColumns] = (),
    ) -> None:
        """Append records without their members that are objects, except usage."""
        self.extend_batches(batches_of(rows), file, lines, replies)

    def extend_batches(
        self,
        batches: Sequence["Batch"],
        file: int,
        lines: Sequence[int],
        replies: Sequence[ReplyColumns] = (),
    ) -> None:
        """Append records of one shape after the other; `line` says which is which."""
        for batch in batches:
            if replies:
                self._extend_replies(gathered(replies, batch.at))
            self._extend_same(batch, gathered(lines, batch.at))
            self.file.extend(array("I", (file,)) * len(batch.at))

    def _extend_replies(self, replies: Sequence[ReplyColumns]) -> None:
        start = len(self)
        self.truncated += bytes(reply.truncated for reply in replies)
        self.empty += bytes(reply.empty for reply in replies)
        self.has_error += bytes(reply.has_error for reply in replies)
        self.answer.extend(reply.digest for reply in replies)
        for name in dict.fromkeys(n for reply in replies for n in reply.components):
            values = [reply.components.get(name) for reply in replies]
            if name in self.components or _has_numbers(values):
                _column(self.components, name).extend(start, values)

    def _extend_same(self, batch: "Batch", lines: Sequence[int]) -> None:
        start, count = len(self), len(lines)
        found = dict(batch.own)
        self.task = joined_index(self.task, found.pop(wire.TASK_INDEX))
        self.rollout = joined_index(self.rollout, found.pop(wire.ROLLOUT_INDEX))
        self.line.frombytes(packed("q", lines))
        self.layout.extend(array("I", (self._layout(batch.names),)) * count)
        self._mask(found.pop(wire.MASK_SAMPLE, None), count)
        self._note_strays(start, found.get(wire.FAILURE_CLASS))
        for name, values in batch.usage.items():
            _column(self.usage, name).extend(start, values)
        found.pop(wire.RESPONSE, None)
        self._extend_own(start, found, batch.names[1])

    def _extend_own(
        self, start: int, found: Mapping[str, Sequence[Any]], usage: Sequence[str]
    ) -> None:
        for name, values in found.items():
            if name.startswith("_"):
                continue
            if name == wire.REWARD:
                self._note_rewards(start, values)
            elif not (name in self.own or name in usage or _has_numbers(values)):
                continue  # no number so far, and it gives none its place
            _column(self.own, name).extend(start, values)

    def _note_rewards(self, start: int, values: Sequence[Any]) -> None:
        if _NUMBERS.issuperset(map(type, values)):
            return
        for row, value in enumerate(values, start):
            if not isinstance(value, int | float):
                self.raw_rewards[row] = value

    def _note_strays(self, start: int, classes: Sequence[Any] | None) -> None:
        for row, name in enumerate(classes or (), start):
            if name is not None:
                self.strays[row] = str(name)

    def _mask(self, marks: Sequence[Any] | None, count: int) -> None:
        self.masked += bytes(count) if marks is None else bytes(map(bool, marks))

    def _layout(self, names: MemberNames) -> int:
        known = self._known.get(names)
        if known is not None:
            return known
        own = tuple(
            name
            for name in names[0]
            if not name.startswith("_") and name not in _NO_METRICS
        )
        layout = Layout(own, names[1])
        number = self._placed(layout)
        if len(self._known) >= _MOST_KNOWN_NAMES:
            self._known.clear()
        self._known[names] = number
        return number

    def _placed(self, layout: Layout) -> int:
        """Return the number of a layout that agrees, widened where it lacks a name."""
        for number in range(len(self.layouts))[-_TRIED_LAYOUTS:]:
            merged = self.layouts[number].merged(layout)
            if merged is not None:
                self.layouts[number] = merged
                return number
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def close(self) -> None:
        """Have every column end at the last row."""
        for columns in (self.own, self.usage, self.components):
            for column in columns.values():
                column.pad(len(self))

    def arrange(self, order: Sequence[int]) -> None:
        """Put the records in another order, or keep some of them.

        One column after the other, so that memory never holds two complete copies.
        """
        self.close()
        kept = order if self.has_replies else []
        places = {row: at for at, row in enumerate(order)} if self._is_sparse else {}
        self.task = _taken(self.task, order)
        self.rollout = _taken(self.rollout, order)
        self.file = _taken(self.file, order)
        self.line = _taken(self.line, order)
        self.masked = bytearray(gathered(self.masked, order))
        self.layout = _taken(self.layout, order)
        for column in (*self.own.values(), *self.usage.values()):
            column.arrange(order)
        self.truncated = bytearray(gathered(self.truncated, kept))
        self.empty = bytearray(gathered(self.empty, kept))
        self.has_error = bytearray(gathered(self.has_error, kept))
        self.answer = _taken(self.answer, kept)
        for column in self.components.values():
            column.arrange(kept)
        self.raw_rewards = _moved(self.raw_rewards, places)
        self.strays = _moved(self.strays, places)

    def drop(self, rows: Sequence[int]) -> None:
        """Leave some records out."""
        dropped = set(rows)
        self.arrange([row for row in range(len(self)) if row not in dropped])

    @property
    def has_replies(self) -> bool:
        """Whether what the replies say was read as well."""
        return len(self.answer) == len(self)

    @property
    def _is_sparse(self) -> bool:
        return bool(self.raw_rewards or self.strays)

    def key(self, row: int) -> tuple[Index, Index]:
        """Return the rollout key of a row."""
        return self.task[row], self.rollout[row]


def _taken(column: Any, order: Sequence[int]) -> Any:  # noqa: ANN401
    if isinstance(column, list):
        return list(gathered(column, order))
    if column.tobytes() == column[:1].tobytes() * len(column):
        return column[:1] * len(order)  # as of the file, where there is one
    return rearranged(column, order)


def _moved(sparse: Mapping[int, Any], places: Mapping[int, int]) -> dict[int, Any]:
    return {places[row]: value for row, value in sparse.items() if row in places}


def _column(columns: dict[str, NumberColumn], name: str) -> NumberColumn:
    column = columns.get(name)
    if column is None:
        column = columns[name] = NumberColumn()
    return column


def _has_numbers(values: Iterable[Any]) -> bool:
    return not _NUMBERS.isdisjoint(map(type, values))
