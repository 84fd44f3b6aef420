"""The plan, `<stem>_materialized_inputs.jsonl`: one line per planned rollout.

Lines are in dispatch order, and each ends with its rollout index. The file is written
completely or not at all, so every line is complete; a line that cannot be read is an
error with file and line.

This module reads complete rows. `planned_rollouts` and `plan_scan` read only what
requests and profiling need, and are faster.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    SEEK_BYTES,
    located,
    open_to_read,
    parse_object,
    read_lines,
    read_row,
    replace_file,
)
from reward_profiling.planning.on_disk.run_manifest import AGAIN
from reward_profiling.planning.row_members import (
    RolloutKey,
    TaskIndex,
    agent_name,
    given_index,
    rollout_key,
)

RowAt = Callable[[int], dict[str, Any]]
"""From the place of a line, in bytes, to its row."""

_LABEL_CHARACTERS = 80
_ABSENT = msgspec.Raw()


class PlanRow(NamedTuple):
    """One line of the plan; what of it is unusable is told when it is asked for."""

    path: Path
    number: int
    """1-based line."""
    text: bytes
    """The line without its ending."""
    members: dict[str, Any]

    @property
    def key(self) -> RolloutKey:
        """Its task and rollout index.

        Raises:
            RecordError: one is missing or unusable; names file and line.
        """
        with located(self.path, self.number):
            return rollout_key(self.members)

    @property
    def task_index(self) -> TaskIndex | None:
        """Its task index; None for a row without one.

        Raises:
            RecordError: it is neither a whole number nor text; names file and line.
        """
        with located(self.path, self.number):
            return given_index(self.members)

    @property
    def agent(self) -> str | None:
        """Name of its agent; None where a task source or a server decides.

        Raises:
            RecordError: `agent_ref` is unusable; names file and line.
        """
        with located(self.path, self.number):
            return agent_name(self.members)

    @property
    def server(self) -> str | None:
        """Environment server that it is stamped with; None where its agent decides."""
        stamp = self.members.get(wire.ENVIRONMENT_SERVER)
        return stamp if isinstance(stamp, str) else None

    @property
    def run_key(self) -> str | None:
        """Name that Gym counts its rollouts under: server, else agent (§4.3).

        Raises:
            RecordError: `agent_ref` is unusable; names file and line.
        """
        return self.agent if self.server is None else self.server


def read_plan(path: Path) -> Iterator[PlanRow]:
    """Yield the rows of a plan in the order of its lines.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no JSON object; names file and line.
    """
    for line in read_lines(path):
        yield parsed_row(path, line.number, line.text)


def parsed_row(path: Path, number: int, text: bytes) -> PlanRow:
    """Parse one line of a plan, given its number, counted from 1.

    Raises:
        RecordError: it is no JSON object; names file and line.
    """
    with located(path, number):
        try:
            members = parse_object(text)
        except RecordError as damage:
            raise RecordError(f"{damage}. {AGAIN}") from damage
        return PlanRow(path, number, text, members)


@contextmanager
def plan_rows(path: Path) -> Iterator[RowAt]:
    """Open a plan to read rows by their place in bytes, here and there.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: from each read, where no JSON object stands; names file and line.
    """
    with open_to_read(path, buffering=SEEK_BYTES) as file:
        yield partial(read_row, file)


def replace_plan(path: Path, lines: Iterable[bytes]) -> None:
    """Write a plan whole or not at all; `lines` come without their newlines.

    Whatever `lines` raises leaves the file as it was.

    Raises:
        OutputWriteError: the disk does not take it; what was there stays.
    """

    def write(file: IO[bytes]) -> None:
        for line in lines:
            file.write(line + b"\n")

    replace_file(path, write)


def extend_plan(path: Path, lines: Iterable[bytes]) -> None:
    """Put lines, without their newlines, at the end of a plan, or leave it as it is.

    Raises:
        ConfigError: there is no plan, or it cannot be read.
        OutputWriteError: the disk does not take it; what was there stays.
    """
    known = (line.text for line in read_lines(path))
    replace_plan(path, chain(known, lines))


class _Prompt(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    responses_create_params: msgspec.Raw = _ABSENT


def read_labels(path: Path) -> dict[TaskIndex, str]:
    """Return what each task is called, by task index; see `task_label`.

    A line that cannot be read is skipped: labels are optional, and other readers of the
    plan report bad lines.

    Raises:
        ConfigError: the file cannot be read.
    """
    decode = msgspec.json.Decoder(_Prompt).decode
    labels: dict[TaskIndex, str] = {}
    for line in read_lines(path):
        try:
            row = decode(line.text)
            if row.task_index in labels or row.responses_create_params is _ABSENT:
                continue
            label = task_label(orjson.loads(bytes(row.responses_create_params)))
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
            orjson.JSONDecodeError,
        ):
            continue
        if label is not None:
            labels[row.task_index] = label
    return labels


def task_label(params: object) -> str | None:
    """Return the beginning of the last message, on one line of at most 80 characters.

    `params` is the row's `responses_create_params`, whatever it holds; None where it
    holds no message with text.
    """
    given = params.get(wire.INPUT) if isinstance(params, Mapping) else None
    if isinstance(given, list) and given:
        last = given[-1]
        given = last.get("content") if isinstance(last, Mapping) else last
    if isinstance(given, list):
        given = " ".join(_texts(given))
    said = " ".join(given.split()) if isinstance(given, str) else ""
    if len(said) > _LABEL_CHARACTERS:
        said = said[: _LABEL_CHARACTERS - 1].rstrip() + "…"
    return said or None


def _texts(parts: list[Any]) -> list[str]:
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return [text for text in texts if isinstance(text, str)]
