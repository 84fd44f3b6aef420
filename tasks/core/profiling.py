"""Gym's reward profile, to the last bit: per task, per agent, per repeat.

Source: `gym-contract.md` §4. Every statistic takes its values in ascending key
order (task, then rollout), so the order of lines never changes a result. A missing
value is `None` and is never counted; what Gym leaves out of a row is left out here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.core import wire
from tasks.core.columns import Columns, columns_of, describe
from tasks.core.completeness import Completion, check_completeness
from tasks.core.errors import RecordError
from tasks.core.records import PlannedRow, Record
from tasks.core.repeats import across_repeats, repeat_entries


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """One row of the reward profile; `sample` goes between `head` and `tail`."""

    head: dict[str, Any]
    sample_place: int
    """Place of the representative row (lowest completed rollout index)."""
    tail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that one profile writes, in file order."""

    tasks: list[TaskProfile]
    """Ascending task index, then label."""
    agents: list[dict[str, Any]]
    """Ascending label; agents that are wholly masked come last."""
    repeats: list[dict[str, Any]]
    """Ascending label, then rollout index."""
    completion: Completion


@dataclass(slots=True)
class _Group:
    """The collected records of one task (and label), in key order."""

    task_index: Any
    label: str | None
    place: int
    expected: int = 0
    records: list[Record] = field(default_factory=list)


def profile_rewards(
    rows: Sequence[PlannedRow], records: Iterable[Record], *, allow_partial: bool
) -> Profile:
    """Profile collected records against the plan.

    Raises:
        DuplicateRolloutError: a key stands twice among the rows or the records.
        UnknownRolloutError: a record belongs to no planned row, partial or not.
        MissingRolloutsError: rows lack a record and `allow_partial` is false.
        RecordError: indices that cannot be ordered (text beside numbers).
    """
    ordered = sorted_by_key(records)
    completion = check_completeness(rows, ordered, allow_partial=allow_partial)
    measured_rows, measured = _measured(rows, ordered)
    labels = run_labels(measured_rows)
    pairs = _paired(measured_rows, measured)
    by_label = _records_by_label(pairs, labels)
    columns = columns_of(measured)
    repeats = repeat_entries(by_label, columns)
    agents = _agent_entries(by_label, repeats, columns)
    _append_coverage(agents, rows, ordered)
    groups = _groups(measured_rows, pairs, labels)
    tasks = [_task_profile(group, columns) for group in groups]
    return Profile(tasks, agents, repeats, completion)


def sorted_by_key(records: Iterable[Record]) -> list[Record]:
    """Return the records in ascending key order."""
    try:
        return sorted(records, key=lambda record: record.key)
    except TypeError as error:
        raise RecordError(
            "task or rollout indices are text in some records and numbers in others;"
            " they cannot be put in order"
        ) from error


def _measured(
    rows: Sequence[PlannedRow], ordered: Sequence[Record]
) -> tuple[Sequence[PlannedRow], list[Record]]:
    """Drop masked records together with their rows."""
    masked = {record.key for record in ordered if record.masked}
    if not masked:
        return rows, list(ordered)
    kept = [record for record in ordered if not record.masked]
    return [row for row in rows if row.key not in masked], kept


def run_labels(rows: Iterable[PlannedRow]) -> dict[str, str]:
    """Label each run key: the agent's name where that is unambiguous (§4.3)."""
    agent_by_key: dict[str, str | None] = {}
    for row in rows:
        if row.run_key is not None:
            agent_by_key.setdefault(row.run_key, row.agent)
    agents = list(agent_by_key.values())
    labels = {
        key: agent if agent is not None and agents.count(agent) == 1 else key
        for key, agent in agent_by_key.items()
    }
    taken = list(labels.values())
    return {
        key: label if taken.count(label) == 1 else key for key, label in labels.items()
    }


def _paired(
    rows: Iterable[PlannedRow], measured: Iterable[Record]
) -> list[tuple[PlannedRow, Record]]:
    by_key = {row.key: row for row in rows}
    return [(by_key[record.key], record) for record in measured]


def _label(row: PlannedRow, labels: Mapping[str, str]) -> str | None:
    return None if row.run_key is None else labels[row.run_key]


def _records_by_label(
    pairs: Iterable[tuple[PlannedRow, Record]], labels: Mapping[str, str]
) -> dict[str, list[Record]]:
    by_label: dict[str, list[Record]] = {}
    for row, record in pairs:
        label = _label(row, labels)
        if label is not None:
            by_label.setdefault(label, []).append(record)
    return dict(sorted(by_label.items()))


def _groups(
    rows: Sequence[PlannedRow],
    pairs: Iterable[tuple[PlannedRow, Record]],
    labels: Mapping[str, str],
) -> list[_Group]:
    """Group records by task, or by task and label where a task went to several."""
    tasks = {row.key[0] for row in rows}
    fan_out = len({(row.key[0], _label(row, labels)) for row in rows}) > len(tasks)

    def identity(row: PlannedRow) -> tuple[Any, str | None]:
        return row.key[0], _label(row, labels) if fan_out else None

    groups: dict[tuple[Any, str | None], _Group] = {}
    for row, record in pairs:
        key = identity(row)
        if fan_out and key[1] is None:
            continue  # Gym's grouping drops a row that has no label
        group = groups.setdefault(key, _Group(*key, place=row.place))
        group.records.append(record)
    for row in rows:
        if (known := groups.get(identity(row))) is not None:
            known.expected += 1
    return sorted(
        groups.values(), key=lambda group: (group.task_index, group.label or "")
    )


def _task_profile(group: _Group, columns: Columns) -> TaskProfile:
    head: dict[str, Any] = {wire.TASK_INDEX: group.task_index}
    head.update(describe(group.records, columns))
    if group.label is not None:
        head[wire.AGENT_REF] = {"name": group.label}
    count = len(group.records)
    infos = [dict(record.info) for record in group.records]
    tail = {
        "num_rollouts": count,
        "expected_num_rollouts": group.expected,
        "missing_num_rollouts": group.expected - count,
        "reward_profile_completion_pct": 100.0 * count / group.expected,
        "rollout_infos": infos,
    }
    return TaskProfile(head, group.place, tail)


def _agent_entries(
    by_label: Mapping[str, Sequence[Record]],
    repeats: Sequence[Mapping[str, Any]],
    columns: Columns,
) -> list[dict[str, Any]]:
    across = across_repeats(repeats)
    return [
        {
            **describe(records, columns),
            wire.AGENT_REF: {"name": label},
            **across.get(label, {}),
        }
        for label, records in by_label.items()
    ]


def _append_coverage(
    agents: list[dict[str, Any]],
    rows: Iterable[PlannedRow],
    ordered: Iterable[Record],
) -> None:
    """Add coverage keys to agents that masked something (§4.1, step 5)."""
    agent_by_key = {row.key: row.agent for row in rows if row.agent is not None}
    by_agent: dict[str, list[Record]] = {}
    for record in ordered:
        name = agent_by_key.get(record.key)
        if name is not None:
            by_agent.setdefault(name, []).append(record)
    entries = {entry[wire.AGENT_REF]["name"]: entry for entry in agents}
    for name, records in by_agent.items():
        coverage = coverage_metrics(records)
        if not coverage:
            continue
        if name not in entries:
            agents.append({wire.AGENT_REF: {"name": name}})
            entries[name] = agents[-1]
        entries[name].update(coverage)


def coverage_metrics(records: Sequence[Record]) -> dict[str, int]:
    """Return how much of the records was measured; empty when none is masked."""
    measured = [record for record in records if not record.masked]
    if len(measured) == len(records):
        return {}
    tasks = {record.key[0] for record in records}
    measured_tasks = {record.key[0] for record in measured}
    return {
        "coverage/measured_rollouts": len(measured),
        "coverage/masked_rollouts": len(records) - len(measured),
        "coverage/measured_tasks": len(measured_tasks),
        "coverage/fully_masked_tasks": len(tasks - measured_tasks),
    }
