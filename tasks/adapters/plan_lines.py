"""The plan's lines, read without building what a collection does not need.

A line goes to the server as the bytes that it is; only its key, its agent and what its
record is stamped with are taken from it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Never

import msgspec
import orjson
from msgspec import UNSET

from tasks.adapters.jsonl import Line, located, open_to_read, parse_object, read_lines
from tasks.core import wire
from tasks.core.errors import RecordError
from tasks.core.records import RolloutKey, agent_name, rollout_key

_NAMES = {
    "task_index": wire.TASK_INDEX,
    "rollout_index": wire.ROLLOUT_INDEX,
    "rollout_id": wire.ROLLOUT_ID,
}


class _PlanLine(msgspec.Struct, rename=_NAMES.get):
    task_index: int | str
    rollout_index: int | str
    agent_ref: dict[str, Any] | None = None
    task_source: Any = UNSET
    skills_ref: Any = UNSET
    rollout_id: Any = UNSET


class PlannedRollout(NamedTuple):
    """One line of the plan, and how it is to be asked for."""

    key: RolloutKey
    agent: str
    place: int
    """Where the line starts in the file, in bytes."""
    body: bytes
    """What is posted to `/run`."""
    stamps: Mapping[str, Any]
    """What the record takes from the row, in Gym's order."""

    @property
    def name(self) -> str:
        """The rollout in words."""
        return f"task {self.key[0]} repeat {self.key[1]}"


_DECODE = msgspec.json.Decoder(_PlanLine).decode


def read_planned(path: Path) -> Iterator[PlannedRollout]:
    """Yield the plan's rollouts in order.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no planned row, or names no agent; names file and line.
    """
    for line in read_lines(path):
        yield _planned(path, line)


def reread_planned(path: Path, places: Iterator[int]) -> Iterator[PlannedRollout]:
    """Yield the rollouts whose lines start at the given places."""
    with open_to_read(path) as file:
        for place in places:
            file.seek(place)
            yield _planned(path, Line(0, place, file.readline().rstrip(b"\r\n")))


def with_attempt(planned: PlannedRollout, attempt: int) -> PlannedRollout:
    """Return the rollout stamped with the number of its earlier failures (§3.7)."""
    if not attempt:
        return planned
    row = {**orjson.loads(planned.body), wire.ATTEMPT_INDEX: attempt}
    stamps = dict(planned.stamps)
    rollout_id = stamps.pop(wire.ROLLOUT_ID, UNSET)
    stamps[wire.ATTEMPT_INDEX] = attempt
    if rollout_id is not UNSET:
        stamps[wire.ROLLOUT_ID] = rollout_id
    return planned._replace(body=orjson.dumps(row), stamps=stamps)


def _planned(path: Path, line: Line) -> PlannedRollout:
    try:
        head = _DECODE(line.text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _explain(path, line, error)
    ref = head.agent_ref
    agent = ref.get("name") if ref else None
    if not isinstance(agent, str):
        with located(path, line.number):
            raise RecordError(
                "names no agent; materialize the inputs again with the servers up"
                " (run), or with --default-agent"
            )
    stamps: dict[str, Any] = {
        wire.TASK_INDEX: head.task_index,
        wire.ROLLOUT_INDEX: head.rollout_index,
        wire.AGENT_REF: ref,
    }
    optional = (
        (wire.TASK_SOURCE, head.task_source),
        (wire.SKILLS_REF, head.skills_ref),
        (wire.ROLLOUT_ID, head.rollout_id),
    )
    stamps.update((name, value) for name, value in optional if value is not UNSET)
    key = (head.task_index, head.rollout_index)
    return PlannedRollout(key, agent, line.place, line.text, stamps)


def _explain(path: Path, line: Line, error: Exception) -> Never:
    """Raise the error that the slower reader gives, with its file and line."""
    with located(path, line.number):
        row = parse_object(line.text)
        rollout_key(row)
        agent_name(row)
        raise RecordError(f"cannot be read: {error}") from error
    raise AssertionError  # the block above always raises
