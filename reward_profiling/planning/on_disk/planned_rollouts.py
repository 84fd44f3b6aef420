"""The plan's lines, read without building what a collection does not need.

The server gets the bytes of the line unchanged; only its key, its runner and the stamps
of its record are read. A materialized task row becomes an episode request that contains
the row's own bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Never, TypeVar

import msgspec
import orjson
from msgspec import UNSET

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    Line,
    located,
    open_to_read,
    parse_object,
    read_lines,
)
from reward_profiling.planning.on_disk.run_manifest import AGAIN
from reward_profiling.planning.row_members import (
    RolloutKey,
    agent_name,
    rollout_key,
    taskset_of,
)

T = TypeVar("T")
_ROLLOUT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ABSENT = msgspec.Raw()


class _PlanLine(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    rollout_index: int | str
    agent_ref: Any = UNSET
    task_source: Any = UNSET
    skills_ref: Any = UNSET
    rollout_id: Any = UNSET
    environment_server: Any = UNSET
    task_id: msgspec.Raw = _ABSENT
    task_input: msgspec.Raw = _ABSENT


class PlannedRollout(NamedTuple):
    """One line of the plan, and how it is to be asked for."""

    key: RolloutKey
    agent: str | None
    """The agent that the row names."""
    server: str | None
    """The environment server that the row is stamped with; it decides."""
    place: int
    """Where the line starts in the file, in bytes."""
    body: bytes
    """What is posted to `/run`."""
    stamps: Mapping[str, Any]
    """What the record takes from the row, in Gym's order."""
    is_enveloped: bool = False
    """Whether it is asked for as an episode, and answered as one."""

    @property
    def runner(self) -> str:
        """The environment server or the agent that is asked for it.

        The two never share a name: both are instances of one configuration.
        """
        return self.agent or "" if self.server is None else self.server

    @property
    def name(self) -> str:
        """The rollout in words."""
        return f"task {self.key[0]} repeat {self.key[1]}"


_DECODE = msgspec.json.Decoder(_PlanLine).decode


def read_planned(
    path: Path, index: int = 0, count: int = 1
) -> Iterator[PlannedRollout]:
    """Yield the rollouts of the plan, or of one of its shards, in order.

    Lines of other shards are passed over unread.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no planned row, or names no agent; names file and line.
    """
    for line in dealt(read_lines(path), index, count):
        yield _planned(path, line)


def dealt(items: Iterable[T], index: int, count: int) -> Iterator[T]:
    """Yield those of `items` that are dealt to shard `index`, in order.

    Every item is in exactly one of the `count` shards 0 … count - 1. Neighbouring lines
    of a plan belong to one task and one environment, so dealing them like cards gives
    every shard some of each.
    """
    return islice(items, index, None, count)


def reread_planned(path: Path, places: Iterator[int]) -> Iterator[PlannedRollout]:
    """Yield the rollouts whose lines start at the given places, in bytes.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: there is no planned row, or it names no agent.
    """
    with open_to_read(path) as file:
        for place in places:
            file.seek(place)
            yield _planned(path, Line(0, place, file.readline().rstrip(b"\r\n")))


def with_attempt(planned: PlannedRollout, attempt: int) -> PlannedRollout:
    """Return the rollout stamped with the number of its earlier failures (§3.7).

    0, the first attempt, leaves it as it is.
    """
    if not attempt:
        return planned
    row = orjson.loads(planned.body)
    if planned.is_enveloped:
        row[wire.ENVELOPE_ID]["attempt"] = attempt
    else:
        row[wire.ATTEMPT_INDEX] = attempt
    stamps = dict(planned.stamps)
    rollout_id = stamps.pop(wire.ROLLOUT_ID, UNSET)
    stamps[wire.ATTEMPT_INDEX] = attempt
    if rollout_id is not UNSET:
        stamps[wire.ROLLOUT_ID] = rollout_id
    return planned._replace(body=orjson.dumps(row), stamps=stamps)


def _planned(path: Path, line: Line) -> PlannedRollout:
    try:
        head = _DECODE(line.text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _explain(path, line, error)
    with located(path, line.number):
        taskset = _taskset(head)
        agent, server = _runner(head, taskset)
        body = line.text if taskset is None else _envelope(head)
    stamps: dict[str, Any] = {
        wire.TASK_INDEX: head.task_index,
        wire.ROLLOUT_INDEX: head.rollout_index,
    }
    optional = (
        (wire.AGENT_REF, head.agent_ref),
        (wire.TASK_SOURCE, head.task_source),
        (wire.SKILLS_REF, head.skills_ref),
        (wire.ROLLOUT_ID, head.rollout_id),
    )
    stamps.update((name, value) for name, value in optional if value is not UNSET)
    key = (head.task_index, head.rollout_index)
    return PlannedRollout(
        key, agent, server, line.place, body, stamps, is_enveloped=taskset is not None
    )


def _taskset(head: _PlanLine) -> str | None:
    """Return the taskset of a materialized task row; None for any other row."""
    if head.task_input is _ABSENT or head.task_id is _ABSENT:
        return None
    task_id = {wire.TASK_ID: orjson.loads(bytes(head.task_id)), wire.TASK_INPUT: None}
    return taskset_of(task_id)


def _runner(head: _PlanLine, taskset: str | None) -> tuple[str | None, str | None]:
    """Return the agent and the environment server that the row names.

    Raises:
        RecordError: it names neither.
    """
    ref = {} if head.agent_ref is UNSET else {wire.AGENT_REF: head.agent_ref}
    agent, stamp = agent_name(ref), head.environment_server
    server = stamp if isinstance(stamp, str) else None
    if agent is not None or server is not None:
        return agent, server
    if taskset is not None:
        raise RecordError(
            "is a materialized task row without an environment server; materialize"
            " the inputs again with --environment-server-routes"
        )
    raise RecordError(
        "has no agent; materialize the inputs again: `run` asks the servers for the"
        " agent of a task source; without servers, --agent-map names it, and"
        " --default-agent that of rows without a source"
    )


def _envelope(head: _PlanLine) -> bytes:
    """Return the request that a materialized task row is sent as (§3.3).

    Raises:
        RecordError: the row's own rollout id is none that Gym takes.
    """
    rollout_id = None if head.rollout_id is UNSET else head.rollout_id
    if rollout_id is None:
        rollout_id = f"{head.task_index}-{head.rollout_index}"
    elif not isinstance(rollout_id, str) or not _ROLLOUT_ID.fullmatch(rollout_id):
        raise RecordError(
            f"{wire.ROLLOUT_ID} is {rollout_id!r}, not letters, digits, dots, dashes"
            " and underscores, with a letter or digit first"
        )
    envelope_id = orjson.dumps({"rollout_id": rollout_id, "attempt": 0})
    return b'{"%b":%b,"task":{"%b":%b,"%b":%b}}' % (
        wire.ENVELOPE_ID.encode(), envelope_id,
        wire.TASK_ID.encode(), bytes(head.task_id),
        wire.TASK_INPUT.encode(), bytes(head.task_input),
    )  # fmt: skip


def _explain(path: Path, line: Line, error: Exception) -> Never:
    """Raise the error that the slower reader gives, with its file and line."""
    with located(path, line.number):
        try:
            row = parse_object(line.text)
        except RecordError as damage:
            raise RecordError(f"{damage}. {AGAIN}") from damage
        rollout_key(row)
        agent_name(row)
        raise RecordError(f"cannot be read: {error}") from error
