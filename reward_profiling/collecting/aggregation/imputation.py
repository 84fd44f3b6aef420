"""Zeros for rollouts without a reward: in the input of aggregate metrics alone.

Whether what failed counts as zero is the reader's decision; no record says it. Source:
`gym-contract.md` §3.8.
"""

from collections.abc import Collection, Mapping
from typing import Any

from reward_profiling import wire

_DIAGNOSIS = frozenset({"failure_kind", "failure_reason"})
_LARGE = frozenset({wire.PARAMS, wire.RESPONSE})


def failure_as_zero(failure: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metric input of a failed rollout: its reward if it has one, else 0.0.

    Its diagnosis stays behind, since a status is a number and would be averaged.
    """
    counted = {
        name: value
        for name, value in failure.items()
        if not name.startswith(wire.FAILURE_PREFIX) and name not in _DIAGNOSIS
    }
    counted[wire.MASK_SAMPLE] = False
    counted.setdefault(wire.REWARD, 0.0)
    return counted


def missing_as_zero(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metric input of a planned rollout that left no line anywhere."""
    counted: dict[str, Any] = {
        wire.TASK_INDEX: row[wire.TASK_INDEX],
        wire.ROLLOUT_INDEX: row[wire.ROLLOUT_INDEX],
        wire.AGENT_REF: row.get(wire.AGENT_REF),
        wire.REWARD: 0.0,
    }
    if wire.ENVIRONMENT_SERVER in row:
        counted[wire.ENVIRONMENT_SERVER] = row[wire.ENVIRONMENT_SERVER]
    return counted


def fill_task_fields(
    counted: dict[str, Any], row: Mapping[str, Any], carried: Collection[str]
) -> None:
    """Give an added zero the dataset fields of its planned row.

    Only those that real records of the same server carry (`carried`): any other number
    would become a metric of its own.
    """
    for name, value in row.items():
        if name in carried and not name.startswith("_") and name not in _LARGE:
            counted.setdefault(name, value)
