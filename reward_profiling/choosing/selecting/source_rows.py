"""The source's task rows, and which task of the plan each of them became."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from reward_profiling import wire
from reward_profiling.choosing.row_matching import (
    PlannedContents,
    SourceRow,
    contents_of,
    match_rows,
)
from reward_profiling.choosing.selecting.pass_rates import earlier_rate
from reward_profiling.choosing.selection import SelectOptions
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import (
    Line,
    located,
    open_to_read,
    parse_object,
    read_lines,
)
from reward_profiling.planning.on_disk.plan_file import read_plan
from reward_profiling.planning.row_members import TaskIndex, given_index


@dataclass(slots=True)
class SourceFile:
    """The source's rows: places and what is known of each, not their text.

    Its lists have one entry per row, in the order of the file, but for `rows`.
    """

    path: Path
    places: list[int] = field(default_factory=list)
    """Where each row's line starts, in bytes."""
    numbers: list[int] = field(default_factory=list)
    """Its line, counted from 1."""
    distinct: list[int] = field(default_factory=list)
    """Its position in `rows`."""
    rows: list[SourceRow] = field(default_factory=list)
    """The distinct rows, in order of first appearance."""
    old: list[float | None] = field(default_factory=list)
    """The earlier pass rate that each row holds, in 0..1."""
    num_odd: int = 0
    """Rows that hold something else there."""
    ending: bytes = b"\n"
    """What ends the source's last line, where that has no end of its own."""
    num_stamped: int = 0
    """Rows that hold stamps of Gym's, which are left out of what is written."""
    has_input: bool = False
    """Whether the first row brings its input; else a template made it."""
    _places_by_text: dict[bytes, int] = field(default_factory=dict)

    def take(self, line: Line, options: SelectOptions) -> None:
        """Take the next row.

        Raises:
            RecordError: it cannot be read, or its task index is unusable.
        """
        row = parse_object(line.text)
        given = given_index(row)
        digest = blake2b(line.text, digest_size=16).digest()
        if digest not in self._places_by_text:
            self._places_by_text[digest] = len(self.rows)
            contents = contents_of(row, has_input=_has_input(row), notes=options.notes)
            self.rows.append(SourceRow(line.number, contents, given))
        if not self.places:
            self.has_input = _has_input(row)
        old = row.get(options.old_column)
        self.places.append(line.place)
        self.numbers.append(line.number)
        self.distinct.append(self._places_by_text[digest])
        self.old.append(earlier_rate(old))
        self.num_odd += old is not None and self.old[-1] is None
        self.num_stamped += any(map(is_stamp, row))

    def tell_apart(self, cores: Collection[bytes]) -> None:
        """Take each appearance of some rows as a row of its own, by their contents."""
        places: list[int] = []
        rows: list[SourceRow] = []
        known: dict[int, int] = {}
        for number, which in zip(self.numbers, self.distinct, strict=True):
            row = self.rows[which]
            if row.contents.core in cores or which not in known:
                known[which] = len(rows)
                rows.append(replace(row, line=number))
            places.append(known[which])
        self.rows, self.distinct = rows, places


def is_stamp(name: str) -> bool:
    """Say whether a row's member is a stamp of Gym's."""
    return name.startswith(wire.NG_PREFIX)


def _has_input(row: Mapping[str, Any]) -> bool:
    params = row.get(wire.PARAMS)
    return isinstance(params, Mapping) and bool(params.get(wire.INPUT))


def read_source(path: Path, options: SelectOptions) -> SourceFile:
    """Read the task rows of a source file.

    Raises:
        ConfigError: the file cannot be read, or holds no rows.
        RecordError: a line cannot be read; names file and line.
    """
    source = SourceFile(path)
    for line in read_lines(path):
        with located(path, line.number):
            source.take(line, options)
    if not source.rows:
        raise ConfigError(f"{path} holds no task rows")
    with open_to_read(path) as file:
        source.ending = b"\r\n" if file.readline().endswith(b"\r\n") else b"\n"
    return source


def tasks_of_rows(
    source: SourceFile, plan: Path, notes: Collection[str]
) -> list[TaskIndex | None]:
    """Return the task of each distinct row, in order; None for one not planned.

    `notes` are columns that are no part of a task.

    Raises:
        ConfigError: the plan cannot be read, or no row was planned in it.
        DatasetError: rows and plan do not belong together.
        RecordError: a line of the plan cannot be read; names file and line.
    """
    planned = PlannedContents()
    for row in read_plan(plan):
        index = row.task_index
        if index is not None and index not in planned.indices:
            contents = contents_of(row.members, has_input=source.has_input, notes=notes)
            planned.add(index, contents)
    source.tell_apart(_dealt_singly(source, planned))
    tasks = match_rows(source.rows, planned, str(source.path))
    if not any(task is not None for task in tasks):
        raise ConfigError(
            f"no row of {source.path} was planned in {plan}; give the input that the"
            " rollouts were made from"
        )
    return tasks


def _dealt_singly(source: SourceFile, planned: PlannedContents) -> set[bytes]:
    """Return the contents of equal rows that are as many tasks of the plan.

    Some plans number every row. Equal rows are then told apart by their order alone.
    """
    rows = Counter(source.rows[which].contents.core for which in source.distinct)
    different = Counter(row.contents.core for row in source.rows)
    return {
        core
        for core, tasks in planned.core.items()
        if len(tasks) == rows[core] > different[core]
    }
