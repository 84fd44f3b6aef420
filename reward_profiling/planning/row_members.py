"""The few members of a row or a record that planning, matching and counting need.

The rest of a row (text, tools, images) is dropped as soon as they have been read
(`gym-contract.md` §4.2 and §4.5).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import RecordError

TaskIndex = int | str
RolloutKey = tuple[Any, Any]
"""(task index, rollout index), as they stand in the file: each an int, or text."""
NO_AGENT = "(no agent)"
"""The label of rollouts without an agent."""


def rollout_key(row: Mapping[str, Any]) -> RolloutKey:
    """Return the key of a planned row or a record.

    Raises:
        RecordError: an index is missing, or is neither a whole number nor text.
    """
    return _index(row, wire.TASK_INDEX), _index(row, wire.ROLLOUT_INDEX)


def _index(row: Mapping[str, Any], name: str) -> int | str:
    if name not in row:
        raise RecordError(f"has no {name}; check that a collection wrote this file")
    value = row[name]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what pandas writes for a column with gaps
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RecordError(f"{name} is {value!r}, not a whole number")
    return value


def given_index(row: Mapping[str, Any]) -> TaskIndex | None:
    """Return the task index that a row brings itself; None for one without.

    Raises:
        RecordError: it is neither a whole number nor text.
    """
    return _index(row, wire.TASK_INDEX) if wire.TASK_INDEX in row else None


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


_SHOWN_KEYS = 10


def shown_keys(keys: Iterable[RolloutKey]) -> str:
    """Return the first ten keys in order, as a person reads them."""
    ordered = sorted(keys, key=lambda key: [(isinstance(i, str), i) for i in key])
    names = [f"task {task} repeat {rollout}" for task, rollout in ordered[:_SHOWN_KEYS]]
    more = len(ordered) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
