"""What profiling keeps of a record: light values, never text or responses."""

import math
from collections.abc import Mapping
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import (
    RecordError,
)
from reward_profiling.planning.row_members import rollout_key, usage_of
from reward_profiling.profiling.records.record_columns import NotFinite


def light_record(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without what profiling does not read, in the same order.

    Members that are lists or objects become null. Exceptions: a reward stays as it is,
    and `response` keeps its usage.

    Raises:
        RecordError: the key is unusable, or `response` or its usage is no object and
            the result is not masked.
    """
    task, rollout = rollout_key(result)
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
        wire.TASK_INDEX: task,
        wire.ROLLOUT_INDEX: rollout,
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
