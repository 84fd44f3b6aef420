"""Gym's reward profile, to the last bit: per task, per agent, per repeat.

Source: `gym-contract.md` §4. Every statistic takes its values in ascending key
order (task, then rollout), so the order of lines never changes a result. A missing
value is `None` and is never counted; what Gym leaves out of a row is left out here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.profiling.gym.group_statistics import describe_groups
from reward_profiling.profiling.gym.measured_records import (
    MeasuredRecords,
    leave_out_masked,
)
from reward_profiling.profiling.gym.metric_columns import Rows
from reward_profiling.profiling.gym.repeat_metrics import across_repeats, label_entries
from reward_profiling.profiling.gym.rollout_infos import RolloutInfos
from reward_profiling.profiling.gym.task_groups import (
    TaskGroup,
    group_by_task,
    in_chunks,
    joined_rows,
)
from reward_profiling.profiling.key_order import put_in_key_order
from reward_profiling.profiling.matching import (
    Completion,
    Matching,
    completion_of,
    match,
)
from reward_profiling.profiling.records.record_columns import RecordColumns


class TaskProfile(msgspec.Struct, frozen=True):
    """One row of the reward profile; `sample` goes between `head` and `tail`."""

    head: dict[str, Any]
    sample_place: int
    """Place of the representative row (lowest completed rollout index)."""
    tail: dict[str, Any]
    """Its `rollout_infos` are JSON already, for orjson to take over."""


class Profile(msgspec.Struct, frozen=True):
    """Everything that one profile writes, in file order."""

    tasks: Iterable[TaskProfile]
    """Ascending task index, then label; made as they are asked for, once."""
    agents: list[dict[str, Any]]
    """Ascending label; agents whose records are all masked come last."""
    repeats: list[dict[str, Any]]
    """Ascending label, then rollout index."""
    completion: Completion


def profile_columns(
    plan: PlanColumns, records: RecordColumns, *, allow_partial: bool
) -> Profile:
    """Profile collected records against the plan; they are put in key order.

    Raises:
        DuplicateRolloutError: a key stands twice among the rows or the records.
        UnknownRolloutError: a record belongs to no planned row, partial or not.
        MissingRolloutsError: rows lack a record and `allow_partial` is false.
        RecordError: indices that cannot be ordered (text beside numbers).
    """
    put_in_key_order(records)
    matching = match(plan, records, allow_partial=allow_partial)
    return profile_matched(plan, records, matching)


def profile_matched(
    plan: PlanColumns, records: RecordColumns, matching: Matching
) -> Profile:
    """Profile records, in key order, that were matched to the plan."""
    measured = leave_out_masked(plan, records, matching)
    by_label = measured.by_label(measured.rows)
    found = {
        label: label_entries(label, records, rows, measured.columns)
        for label, rows in by_label.items()
    }
    repeats = [entry for entries in found.values() for entry in entries.repeats]
    across = across_repeats(repeats)
    agents: list[dict[str, Any]] = [
        {
            **entries.agent,
            wire.AGENT_REF: {"name": label},
            **across.get(label, {}),
        }
        for label, entries in found.items()
    ]
    _append_coverage(agents, measured)
    return Profile(
        _task_profiles(measured),
        agents,
        repeats,
        completion_of(plan, records, matching),
    )


def _task_profiles(measured: MeasuredRecords) -> Iterator[TaskProfile]:
    infos = RolloutInfos(measured.records)
    for chunk in in_chunks(group_by_task(measured)):
        rows = joined_rows(chunk)
        heads = describe_groups(
            measured.columns,
            [metric.floats_at(rows) for metric in measured.columns.metrics],
            [len(group.rows) for group in chunk],
        )
        entries = infos.at(rows)
        stop = 0
        for group, described in zip(chunk, heads, strict=True):
            start, stop = stop, stop + len(group.rows)
            head: dict[str, Any] = {wire.TASK_INDEX: group.task, **described}
            if group.label is not None:
                head[wire.AGENT_REF] = {"name": group.label}
            sample = measured.plan.place[measured.plan_of[group.rows[0]]]
            yield TaskProfile(head, sample, _tail(group, entries[start:stop]))


def _tail(group: TaskGroup, infos: list[str]) -> dict[str, Any]:
    count = len(group.rows)
    return {
        "num_rollouts": count,
        "expected_num_rollouts": group.expected,
        "missing_num_rollouts": group.expected - count,
        "reward_profile_completion_pct": 100.0 * count / group.expected,
        "rollout_infos": orjson.Fragment(f"[{','.join(infos)}]"),
    }


def _append_coverage(agents: list[dict[str, Any]], measured: MeasuredRecords) -> None:
    """Add coverage keys to agents that masked something (§4.1, step 5)."""
    records = measured.records
    if 1 not in records.masked:
        return
    by_agent: dict[str, list[int]] = {}
    every = range(len(records))
    for row, runner in zip(every, measured.runners(every), strict=True):
        name, _ = measured.plan.runners[runner]
        if name is not None:
            by_agent.setdefault(name, []).append(row)
    entries = {entry[wire.AGENT_REF]["name"]: entry for entry in agents}
    for name, rows in by_agent.items():
        coverage = coverage_metrics(records, rows)
        if not coverage:
            continue
        if name not in entries:
            agents.append({wire.AGENT_REF: {"name": name}})
            entries[name] = agents[-1]
        entries[name].update(coverage)


def coverage_metrics(records: RecordColumns, rows: Rows) -> dict[str, int]:
    """Return how much of some records was measured; empty when none is masked."""
    measured = [row for row in rows if not records.masked[row]]
    if len(measured) == len(rows):
        return {}
    tasks = {records.task[row] for row in rows}
    measured_tasks = {records.task[row] for row in measured}
    return {
        "coverage/measured_rollouts": len(measured),
        "coverage/masked_rollouts": len(rows) - len(measured),
        "coverage/measured_tasks": len(measured_tasks),
        "coverage/fully_masked_tasks": len(tasks - measured_tasks),
    }
