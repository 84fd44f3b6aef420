"""What profiling keeps of a planned row and of a collected record.

A row of text, tools or images is dropped as soon as these few values are taken from it
(`gym-contract.md` §4.2 and §4.5).
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.profiling.records.record_columns import NotFinite

_INDEX_TYPES = (int, str)
RolloutKey = tuple[Any, Any]
"""(task index, rollout index), as they stand in the file: ints, or text."""


class PlannedRow(msgspec.Struct, frozen=True):
    """One planned rollout: a line of the materialized inputs."""

    key: RolloutKey
    agent: str | None
    """Name of the agent that runs it; None in rows that carry none."""
    run_key: str | None
    """Environment server stamp, else the agent's name (contract §4.3)."""
    place: int
    """Where the line starts in its file, in bytes; it leads back to the row."""


def rollout_key(row: Mapping[str, Any]) -> RolloutKey:
    """Return the row's key.

    Raises:
        RecordError: an index is missing, or is neither a whole number nor text.
    """
    return _index(row, wire.TASK_INDEX), _index(row, wire.ROLLOUT_INDEX)


def _index(row: Mapping[str, Any], name: str) -> int | str:
    value = row.get(name)
    if isinstance(value, _INDEX_TYPES) and not isinstance(value, bool):
        return value
    if name not in row:
        raise RecordError(f"has no {name}; was it written by a collection?")
    raise RecordError(f"{name} is {value!r}, not a whole number")


def agent_name(row: Mapping[str, Any]) -> str | None:
    """Return `agent_ref.name`, or None.

    Raises:
        RecordError: `agent_ref` is neither null nor an object with a text `name`.
    """
    ref = row.get(wire.AGENT_REF)
    if not ref:
        return None
    if not isinstance(ref, Mapping):
        raise RecordError(f"agent_ref is {_kind(ref)}, not an object with a name")
    name = ref.get("name")
    if name is not None and not isinstance(name, str):
        raise RecordError(f"agent_ref.name is {_kind(name)}, not text")
    return name


def taskset_of(row: Mapping[str, Any]) -> str | None:
    """Return the taskset of a materialized task row; None for any other row.

    Such a row is a task already made (`task_id` and `task_input`), which goes to an
    environment server as an episode. As in Gym, one without a taskset is a flat row.
    """
    task_id = row.get(wire.TASK_ID)
    if not isinstance(task_id, Mapping) or wire.TASK_INPUT not in row:
        return None
    taskset = task_id.get(wire.TASKSET)
    return taskset if isinstance(taskset, str) and taskset else None


def planned_row(row: Mapping[str, Any], place: int) -> PlannedRow:
    """Take from a materialized row what profiling needs."""
    agent = agent_name(row)
    server = row.get(wire.ENVIRONMENT_SERVER)
    run_key = server if isinstance(server, str) else agent
    return PlannedRow(rollout_key(row), agent, run_key, place)


def light_record(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without what profiling does not read, in the same order.

    Members that are lists or objects become null, but for a reward, which is shown as
    it is; of `response`, usage stays.

    Raises:
        RecordError: the key is unusable, or `response` or its usage is no object and
            the result is not masked.
    """
    rollout_key(result)
    masked = bool(result.get(wire.MASK_SAMPLE))
    try:
        usage = usage_of(result)
    except RecordError:
        if not masked:  # what measures nothing is not read, and need not be usable
            raise
        usage = {}
    failure = result.get(wire.FAILURE_CLASS)
    light = {name: _plain(value) for name, value in result.items()}
    read = {
        wire.MASK_SAMPLE: masked,
        wire.RESPONSE: {wire.USAGE: {k: _plain(v) for k, v in usage.items()}},
        wire.REWARD: _reward(result.get(wire.REWARD)),
        wire.FAILURE_CLASS: None if failure is None else str(failure),
    }
    light.update((name, value) for name, value in read.items() if name in light)
    return light


def _plain(value: object) -> object:
    is_number = not isinstance(value, dict | list) and not _not_finite(value)
    return value if is_number else None


def _reward(value: object) -> object:
    return _not_finite(value) or value


def _not_finite(value: object) -> NotFinite | None:
    if not isinstance(value, float) or math.isfinite(value):
        return None
    return NotFinite.NAN if math.isnan(value) else NotFinite.INFINITE


def usage_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `response.usage`; empty where there is none.

    Raises:
        RecordError: `response` or its usage is neither an object nor empty.
    """
    response = result.get(wire.RESPONSE) or {}
    if not isinstance(response, Mapping):
        raise RecordError(f"response is {_kind(response)}, not an object")
    usage = response.get(wire.USAGE) or {}
    if not isinstance(usage, Mapping):
        raise RecordError(f"response.usage is {_kind(usage)}, not an object")
    return usage


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
