"""What an environment server answers to `/aggregate_metrics`.

Source: `gym-contract.md` §5, without the hooks of particular environments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.core import wire
from tasks.core.profiling import Profile, coverage_metrics, profile_rewards
from tasks.core.records import PlannedRow, Record, collected_record

_AGENT = "agent"


def aggregate_reply(verify_responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise collected records as Gym's servers do.

    Raises:
        DuplicateRolloutError: two records carry one key.
        RecordError: a record cannot be read.
    """
    records = [collected_record(_with_key(reply)) for reply in verify_responses]
    if not records:
        return _reply([], {}, {}, [])
    coverage: dict[str, Any] = dict(coverage_metrics(records))
    if all(record.masked for record in records):
        return _reply([], coverage, dict(coverage), [])
    profile = profile_rewards(
        [_synthetic_row(record) for record in records], records, allow_partial=False
    )
    agent = {k: v for k, v in profile.agents[0].items() if k != wire.AGENT_REF}
    agent |= coverage
    agent["num_repeats"] = len({record.key[1] for record in records})
    key_metrics = {k: v for k, v in agent.items() if k.startswith("mean/")} | coverage
    return _reply(_task_rows(profile), agent, key_metrics, _repeat_rows(profile))


def _with_key(reply: Mapping[str, Any]) -> dict[str, Any]:
    return {wire.TASK_INDEX: 0, wire.ROLLOUT_INDEX: 0, **reply}


def _synthetic_row(record: Record) -> PlannedRow:
    return PlannedRow(record.key, _AGENT, _AGENT, place=0)


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
