"""What profiling keeps of a planned row and of a collected record.

Numeric extraction follows `gym-contract.md` §4.2 and §4.5. A row of text, tools or
images is dropped as soon as these few values are taken from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.core import wire
from tasks.core.errors import RecordError

_INDEX_TYPES = (int, str)
Number = int | float
RolloutKey = tuple[Any, Any]
"""(task index, rollout index), as they stand in the file: ints, or text."""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One planned rollout: a line of the materialized inputs."""

    key: RolloutKey
    agent: str | None
    """Name of the agent that runs it; None in rows that carry none."""
    run_key: str | None
    """Environment server stamp, else the agent's name (contract §4.3)."""
    place: int
    """Where the line starts in its file, in bytes; it leads back to the row."""


@dataclass(frozen=True, slots=True)
class Record:
    """One collected rollout: a line of the rollouts file."""

    key: RolloutKey
    masked: bool
    """True when the server says that its reward measures nothing."""
    metrics: Mapping[str, Number]
    """Numeric columns, in first-seen order; usage wins over a same-named field."""
    info: Mapping[str, Any]
    """Its entry in `rollout_infos`, in Gym's key order."""
    failure_class: str | None
    """Set when the line is a failure that strayed into the rollouts file."""


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


def collected_record(result: Mapping[str, Any]) -> Record:
    """Take from a result what profiling needs.

    Raises:
        RecordError: the key is unusable, or `response` or its usage is no object and
            the result is not masked.
    """
    key = rollout_key(result)
    masked = bool(result.get(wire.MASK_SAMPLE))
    try:
        usage = usage_of(result)
    except RecordError:
        if not masked:  # what measures nothing is not read, and need not be usable
            raise
        usage = {}
    failure = result.get(wire.FAILURE_CLASS)
    return Record(
        key=key,
        masked=masked,
        metrics=_metrics(result, usage),
        info=_info(key, result, usage),
        failure_class=None if failure is None else str(failure),
    )


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


def _metrics(result: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Number]:
    # A key in both keeps its place but takes usage's value, number or not.
    # Only the result's own `mask_sample` is a mark; usage may count what it likes.
    own = {name: value for name, value in result.items() if name != wire.MASK_SAMPLE}
    merged = {**own, **usage}
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in merged.items()
        if isinstance(value, int | float) and not name.startswith("_")
    }


def _info(
    key: RolloutKey, result: Mapping[str, Any], usage: Mapping[str, Any]
) -> dict[str, Any]:
    info: dict[str, Any] = {
        "rollout_id": f"{key[0]}:{key[1]}",
        wire.TASK_INDEX: key[0],
        wire.ROLLOUT_INDEX: key[1],
    }
    if wire.REWARD in result:
        info[wire.REWARD] = result[wire.REWARD]
    for name, value in usage.items():
        if isinstance(value, int | float):
            info[name] = int(value) if isinstance(value, bool) else value
    for name, value in result.items():
        if not isinstance(value, int | float) or name.startswith("_"):
            continue
        if name not in {wire.REWARD, wire.RESPONSE, wire.MASK_SAMPLE}:
            info[name] = int(value) if isinstance(value, bool) else value
    return info


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
