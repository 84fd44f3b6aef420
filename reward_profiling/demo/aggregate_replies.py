"""What an environment server answers to `/aggregate_metrics`.

Source: `gym-contract.md` §5, without the hooks of particular environments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from reward_profiling import wire
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.profiling.gym.gym_profile import (
    Profile,
    coverage_metrics,
    profile_columns,
)
from reward_profiling.profiling.key_order import put_in_key_order
from reward_profiling.profiling.records.light_records import light_record
from reward_profiling.profiling.records.record_columns import RecordColumns

_AGENT = "agent"


def aggregate_reply(verify_responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise collected records as Gym's servers do.

    Raises:
        DuplicateRolloutError: two records carry one key.
        RecordError: a record cannot be read.
    """
    records = RecordColumns()
    rows = [light_record(_with_key(reply)) for reply in verify_responses]
    records.extend(rows, 0, range(1, len(rows) + 1))
    records.close()
    if not rows:
        return _reply([], {}, {}, [])
    put_in_key_order(records)
    coverage: dict[str, Any] = dict(coverage_metrics(records, range(len(records))))
    if all(records.masked):
        return _reply([], coverage, dict(coverage), [])
    profile = profile_columns(_synthetic_plan(records), records, allow_partial=False)
    agent = {k: v for k, v in profile.agents[0].items() if k != wire.AGENT_REF}
    agent |= coverage
    agent["num_repeats"] = len(set(records.rollout))
    key_metrics = {k: v for k, v in agent.items() if k.startswith("mean/")} | coverage
    return _reply(_task_rows(profile), agent, key_metrics, _repeat_rows(profile))


def _with_key(reply: Mapping[str, Any]) -> dict[str, Any]:
    return {wire.TASK_INDEX: 0, wire.ROLLOUT_INDEX: 0, **reply}


def _synthetic_plan(records: RecordColumns) -> PlanColumns:
    count = len(records)
    plan = PlanColumns()
    runners = [(_AGENT, _AGENT)] * count
    plan.extend(records.task, records.rollout, runners, [0] * count)
    return plan


def _task_rows(profile: Profile) -> list[dict[str, Any]]:
    sample = {wire.AGENT_REF: {"name": _AGENT}}
    return [{**task.head, "sample": sample, **task.tail} for task in profile.tasks]


def _repeat_rows(profile: Profile) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in entry.items() if k != wire.AGENT_REF}
        for entry in profile.repeats
    ]


def _reply(
    tasks: list[dict[str, Any]],
    agent: dict[str, Any],
    key_metrics: dict[str, Any],
    repeats: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "group_level_metrics": tasks,
        "agent_metrics": agent,
        "key_metrics": key_metrics,
        "perf_summary": None,
        "repeat_level_metrics": repeats,
    }
