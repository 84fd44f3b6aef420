"""Which task of a plan a source row became: matched by what it says, not by its place.

A plan stamps a row, may send it elsewhere and may lay settings over it. So a row is
looked up by everything it holds first, then by what no plan changes. Rows that say the
same to that point are told apart by their order, as planning numbered them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.errors import DatasetError
from reward_profiling.planning.row_members import TaskIndex

_CHANGED = frozenset({wire.AGENT_REF, wire.PARAMS, wire.SKILLS_REF})
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Contents:
    """Digests of what a row says."""

    whole: bytes
    """Of everything but Gym's stamps and skills."""
    core: bytes
    """Of what no plan changes: the dataset's own fields, and the input."""


def contents_of(
    row: Mapping[str, Any],
    *,
    has_input: bool = True,
    notes: Collection[str] = (),
) -> Contents:
    """Return the digests of a task row or a planned row, 16 bytes each.

    `has_input` says that the source rows bring their input; else a template made it,
    and it is no part of what the row says. `notes` are columns that were written about
    the task, such as a pass rate: they tell rows apart that say the same, and no more.
    """
    own = {n: v for n, v in row.items() if not n.startswith(wire.NG_PREFIX)}
    whole = {n: v for n, v in own.items() if n != wire.SKILLS_REF}
    fixed = {n: v for n, v in own.items() if n not in _CHANGED and n not in notes}
    params = row.get(wire.PARAMS)
    if has_input and isinstance(params, Mapping):
        fixed[wire.PARAMS] = params.get(wire.INPUT)
    return Contents(_digest(whole), _digest(fixed))


def _digest(row: Mapping[str, Any]) -> bytes:
    """Return a digest that does not depend on the order of members."""
    text = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=16).digest()


@dataclass(slots=True)
class PlannedContents:
    """What the tasks of a plan say, by task index."""

    whole: dict[bytes, list[TaskIndex]] = field(default_factory=dict)
    core: dict[bytes, list[TaskIndex]] = field(default_factory=dict)
    indices: dict[TaskIndex, Contents] = field(default_factory=dict)

    def add(self, index: TaskIndex, contents: Contents) -> None:
        """Take one task."""
        self.indices[index] = contents
        self.whole.setdefault(contents.whole, []).append(index)
        self.core.setdefault(contents.core, []).append(index)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A distinct row of the source."""

    line: int
    """Line of its first appearance."""
    contents: Contents
    given: TaskIndex | None
    """The task index that it brings itself."""


def match_rows(
    rows: Sequence[SourceRow], plan: PlannedContents, name: str
) -> list[TaskIndex | None]:
    """Return the task of each distinct row, in order; None for one not planned.

    `name` is what faults call the source.

    Raises:
        DatasetError: rows that bring an index say something else than its task, or
            several tasks fit and rows that would tell them apart are gone.
    """
    matching = _Matching(rows, plan, name)
    matching.by_index()
    matching.by_content(plan.whole, [row.contents.whole for row in rows])
    matching.by_content(plan.core, [row.contents.core for row in rows])
    if matching.faults:
        count = len(matching.faults)
        raise DatasetError(
            f"{count} rows of the input do not fit the plan:", matching.faults
        )
    return matching.found


class _Matching:
    """Rows and their tasks, while they are looked for."""

    def __init__(
        self, rows: Sequence[SourceRow], plan: PlannedContents, name: str
    ) -> None:
        self.found: list[TaskIndex | None] = [None] * len(rows)
        self.faults: list[str] = []
        self._rows = rows
        self._plan = plan
        self._name = name

    def by_index(self) -> None:
        """Match the rows that bring a task index themselves."""
        for place, row in enumerate(self._rows):
            known = None if row.given is None else self._plan.indices.get(row.given)
            if known is None:
                continue
            self.found[place] = row.given
            if known.core != row.contents.core:
                self.faults.append(
                    f"{self._name}:{row.line}: says something else than task"
                    f" {row.given} of the plan; give the input that was planned"
                )

    def by_content(
        self, tasks: Mapping[bytes, Sequence[TaskIndex]], digests: Sequence[bytes]
    ) -> None:
        """Match the rows that are left by one of their digests, in order."""
        taken = {index for index in self.found if index is not None}
        groups: dict[bytes, list[int]] = {}
        for place, row in enumerate(self._rows):
            if self.found[place] is None and row.given is None:
                groups.setdefault(digests[place], []).append(place)
        for digest, places in groups.items():
            fitting = [i for i in tasks.get(digest, ()) if i not in taken]
            if len(fitting) > len(places):
                self.faults.append(self._ambiguous(places, fitting))
            for place, index in zip(places, fitting, strict=False):
                self.found[place] = index

    def _ambiguous(self, places: Sequence[int], fitting: Sequence[TaskIndex]) -> str:
        lines = _listed(self._rows[place].line for place in places)
        return (
            f"{self._name}:{lines}: tasks {_listed(fitting)} of the plan say the same,"
            " and some of their rows are gone; give the input that was planned"
        )


def _listed(indices: Iterable[TaskIndex]) -> str:
    return ", ".join(map(str, islice(indices, _SHOWN)))
