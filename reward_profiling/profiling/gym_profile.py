"""Gym's reward profile, to the last bit: per task, per agent, per repeat.

Source: `gym-contract.md` §4. Every statistic takes its values in ascending key
order (task, then rollout), so the order of lines never changes a result. A missing
value is `None` and is never counted; what Gym leaves out of a row is left out here.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.numerics.index_column import Index
from reward_profiling.numerics.number_column import gathered
from reward_profiling.planning.on_disk.plan_columns import PlanColumns, Runner
from reward_profiling.profiling.group_statistics import describe_groups
from reward_profiling.profiling.key_order import put_in_key_order, task_spans
from reward_profiling.profiling.matching import (
    Completion,
    Matching,
    completion_of,
    match,
)
from reward_profiling.profiling.metric_columns import Columns, Rows, columns_of
from reward_profiling.profiling.records.record_columns import RecordColumns
from reward_profiling.profiling.repeat_metrics import across_repeats, label_entries
from reward_profiling.profiling.rollout_infos import RolloutInfos

_CHUNK_ROWS = 2_048
_NOTHING = (0, 0)


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
    """Ascending label; agents that are wholly masked come last."""
    repeats: list[dict[str, Any]]
    """Ascending label, then rollout index."""
    completion: Completion


class _Measured(msgspec.Struct, frozen=True):
    """The records whose reward may count, and who ran them."""

    plan: PlanColumns
    records: RecordColumns
    plan_of: Sequence[int]
    """Row of the plan of each record, measured or not."""
    planned: Rows
    """Rows of the plan that are no masked record's, in key order."""
    rows: Rows
    """Rows of the records, in key order."""
    labels: Sequence[str | None]
    """Label of each of the plan's runners."""
    columns: Columns

    def runners(self, rows: Rows) -> Sequence[int]:
        """Return the runner of each of some records."""
        return gathered(self.plan.runner, gathered(self.plan_of, rows))


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
    measured = _measured(plan, records, matching)
    by_label = _rows_by_label(measured)
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


def _measured(
    plan: PlanColumns, records: RecordColumns, matching: Matching
) -> _Measured:
    """Drop masked records together with their rows."""
    rows: Rows = range(len(records))
    planned = matching.plan_order
    if 1 in records.masked:
        rows = [row for row in rows if not records.masked[row]]
        marks = iter(records.masked)
        dropped = [has and next(marks) for has in matching.has_record]
        planned = list(compress(planned, [not drop for drop in dropped]))
    labels = run_labels(_runners_in_line_order(plan, planned))
    return _Measured(
        plan,
        records,
        matching.plan_of,
        planned,
        rows,
        [None if key is None else labels.get(key) for _, key in plan.runners],
        columns_of(records, rows),
    )


def _runners_in_line_order(plan: PlanColumns, planned: Rows) -> Iterable[Runner]:
    rows = planned if isinstance(planned, range) else sorted(planned)
    numbers = dict.fromkeys(gathered(plan.runner, rows))
    return [plan.runners[number] for number in numbers]


def run_labels(runners: Iterable[Runner]) -> dict[str, str]:
    """Label each run key: the agent's name where that is unambiguous (§4.3)."""
    agent_by_key: dict[str, str | None] = {}
    for agent, run_key in runners:
        if run_key is not None:
            agent_by_key.setdefault(run_key, agent)
    agents = list(agent_by_key.values())
    labels = {
        key: agent if agent is not None and agents.count(agent) == 1 else key
        for key, agent in agent_by_key.items()
    }
    taken = list(labels.values())
    return {
        key: label if taken.count(label) == 1 else key for key, label in labels.items()
    }


def _rows_by_label(measured: _Measured) -> dict[str, Rows]:
    labels = set(map(measured.labels.__getitem__, set(measured.runners(measured.rows))))
    if len(labels) == 1 and None not in labels:
        return {label: measured.rows for label in labels if label is not None}
    by_label: dict[str, list[int]] = {}
    for row, runner in zip(measured.rows, measured.runners(measured.rows), strict=True):
        label = measured.labels[runner]
        if label is not None:
            by_label.setdefault(label, []).append(row)
    return dict(sorted(by_label.items()))


class _Group(msgspec.Struct, frozen=True):
    """The measured records of one task (and label)."""

    task: Index
    label: str | None
    rows: Rows
    expected: int


def _groups(measured: _Measured) -> Iterator[_Group]:
    """Group records by task, or by task and label where a task went to several."""
    planned_tasks = gathered(measured.plan.task, measured.planned)
    planned_runners = gathered(measured.plan.runner, measured.planned)
    spans = list(task_spans(planned_tasks))
    is_fan_out = len(set(measured.labels)) > 1 and any(
        len({measured.labels[runner] for runner in set(planned_runners[start:stop])})
        > 1
        for start, stop in spans
    )
    tasks = gathered(measured.records.task, measured.rows)
    measured_spans = task_spans(tasks)
    first, last = next(measured_spans, _NOTHING)
    for start, stop in spans:
        task = planned_tasks[start]
        if first == last or tasks[first] != task:
            continue  # nothing of this task was measured
        rows = measured.rows[first:last]
        first, last = next(measured_spans, _NOTHING)
        if not is_fan_out:
            yield _Group(task, None, rows, stop - start)
            continue
        yield from _by_label(measured, task, rows, planned_runners[start:stop])


def _by_label(
    measured: _Measured, task: Index, rows: Rows, planned: Sequence[int]
) -> Iterator[_Group]:
    """Split a task's records by label; Gym's grouping drops those without one."""
    found: dict[str, list[int]] = {}
    for row, runner in zip(rows, measured.runners(rows), strict=True):
        label = measured.labels[runner]
        if label is not None:
            found.setdefault(label, []).append(row)
    expected = [measured.labels[runner] for runner in planned]
    for label, members in sorted(found.items()):
        yield _Group(task, label, members, expected.count(label))


def _chunks(groups: Iterable[_Group]) -> Iterator[list[_Group]]:
    """Put groups together, so that columns are not gone to for each."""
    chunk: list[_Group] = []
    count = 0
    for group in groups:
        chunk.append(group)
        count += len(group.rows)
        if count >= _CHUNK_ROWS:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def _task_profiles(measured: _Measured) -> Iterator[TaskProfile]:
    infos = RolloutInfos(measured.records)
    for chunk in _chunks(_groups(measured)):
        rows = _joined_rows([group.rows for group in chunk])
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


def _joined_rows(parts: Sequence[Rows]) -> Rows:
    if all(isinstance(part, range) for part in parts):
        return range(parts[0][0], parts[-1][-1] + 1)
    return [row for part in parts for row in part]


def _tail(group: _Group, infos: list[str]) -> dict[str, Any]:
    count = len(group.rows)
    return {
        "num_rollouts": count,
        "expected_num_rollouts": group.expected,
        "missing_num_rollouts": group.expected - count,
        "reward_profile_completion_pct": 100.0 * count / group.expected,
        "rollout_infos": orjson.Fragment(f"[{','.join(infos)}]"),
    }


def _append_coverage(agents: list[dict[str, Any]], measured: _Measured) -> None:
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
