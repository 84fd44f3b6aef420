"""Plan, records and failures become one row per planned rollout."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import compress
from math import isnan, nan

from reward_profiling import wire
from reward_profiling.collecting.on_disk.failures import Failures
from reward_profiling.numerics.number_column import ABSENT, IS_NUMBER, gathered
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.row_members import NO_AGENT, RolloutKey
from reward_profiling.profiling.gym.metric_columns import MetricColumn
from reward_profiling.profiling.key_order import task_spans
from reward_profiling.profiling.matching import Matching, placed
from reward_profiling.profiling.records.record_columns import NotFinite, RecordColumns
from reward_profiling.profiling.rollout_table import (
    EMPTY,
    NO,
    ONLY_THOUGHT,
    UNKNOWN,
    RolloutStatus,
    RolloutTable,
)

_CHAT_TOKENS = "completion_tokens"
"""What a usage of Chat Completions calls `output_tokens`."""


def tabulate(
    plan: PlanColumns,
    records: RecordColumns,
    matching: Matching,
    failures: Mapping[RolloutKey, Failures],
) -> RolloutTable:
    """Return one row per planned rollout, without metrics and answers."""
    order = matching.plan_order
    table = RolloutTable()
    planned_tasks = gathered(plan.task, order)
    for number, (start, stop) in enumerate(task_spans(planned_tasks)):
        table.tasks.append(planned_tasks[start])
        table.task.extend([number] * (stop - start))
    table.rollout = list(gathered(plan.rollout, order))
    _name_agents(table, plan, order)
    _settle(table, records, matching)
    table.attempts = array("q", bytes(8 * len(order)))
    if failures:
        _note_failures(table, failures)
    return table


def _name_agents(table: RolloutTable, plan: PlanColumns, order: Sequence[int]) -> None:
    names = [agent or run_key or NO_AGENT for agent, run_key in plan.runners]
    table.agents = sorted(set(names))
    numbers = [table.agents.index(name) for name in names]
    table.agent = array("q", map(numbers.__getitem__, gathered(plan.runner, order)))


def _settle(table: RolloutTable, records: RecordColumns, matching: Matching) -> None:
    """Fill in status and reward."""
    states, rewards = _states_and_rewards(records)
    has_record = matching.has_record
    table.status = placed(states, has_record, RolloutStatus.MISSING)  # type: ignore[assignment]
    table.reward = placed(rewards, has_record, nan)  # type: ignore[assignment]


def _states_and_rewards(records: RecordColumns) -> "tuple[bytearray, array[float]]":
    column = records.own.get(wire.REWARD)
    every = range(len(records))
    if column is None:
        return _marked(bytes(len(records)), records.masked), array("d", [nan]) * len(
            records
        )
    states = _marked(column.kinds_at(every).translate(IS_NUMBER), records.masked)
    values = column.floats_at(every)
    if not any(states):
        return states, array("d", values)  # type: ignore[arg-type]
    return states, array(
        "d",
        [
            nan if state or value is None else value
            for state, value in zip(states, values, strict=True)
        ],
    )


def _marked(is_number: bytes, masked: bytearray) -> bytearray:
    states = bytearray(
        is_number.translate(
            bytes((RolloutStatus.UNSCORED, RolloutStatus.SCORED)) + bytes(254)
        )
    )
    for row in compress(range(len(masked)), masked):
        states[row] = RolloutStatus.MASKED
    return states


def _note_failures(
    table: RolloutTable, failures: Mapping[RolloutKey, Failures]
) -> None:
    for row, rollout in enumerate(table.rollout):
        found = failures.get((table.tasks[table.task[row]], rollout))
        if found is None:
            continue
        table.attempts[row] = found.number
        table.failure_class[row] = found.last_class
        if table.status[row] == RolloutStatus.MISSING:
            table.status[row] = RolloutStatus.FAILED


def unscored_reasons(records: RecordColumns) -> dict[int, str]:
    """Say of each record without a usable reward what it has instead, by row."""
    column = records.own.get(wire.REWARD)
    kinds = bytes(len(records)) if column is None else bytes(column.kinds)
    if 0 not in kinds.translate(IS_NUMBER):
        return {}
    return {
        row: "missing" if kind == ABSENT else _unusable(records, row)
        for row, kind in enumerate(kinds)
        if not IS_NUMBER[kind] and not records.masked[row]
    }


def _unusable(records: RecordColumns, row: int) -> str:
    raw = records.raw_rewards.get(row, NotFinite.INFINITE)
    if isinstance(raw, NotFinite):
        return raw.value
    if raw is None:
        return "null"
    names: dict[type, str] = {str: "text", list: "a list", dict: "an object"}
    return names.get(type(raw), "no number")


def fill_metrics(
    table: RolloutTable,
    records: RecordColumns,
    matching: Matching,
    metrics: Sequence[MetricColumn],
) -> None:
    """Give a table its numeric columns: all but the reward."""
    for metric in metrics:
        spread = _spread(metric, records, matching)
        if metric.name == "output_tokens":
            table.output_tokens = spread
        if metric.name != wire.REWARD:
            table.metrics[metric.name] = spread
    if (chat := table.metrics.get(_CHAT_TOKENS)) is not None:
        table.output_tokens = _filled(table.output_tokens, chat)


def _filled(values: "array[float]", others: "array[float]") -> "array[float]":
    """Return values, with another's where one is unknown, or where there are none."""
    pairs = zip(values or others, others, strict=True)
    return array("d", [other if isnan(value) else value for value, other in pairs])


def fill_replies(
    table: RolloutTable, records: RecordColumns, matching: Matching
) -> None:
    """Give a table what the replies say, where they were read."""
    table.output_tokens = table.output_tokens or array("d", [nan]) * len(table)
    if not records.has_replies:
        table.truncated = bytearray((UNKNOWN,)) * len(table)
        table.empty = bytearray((UNKNOWN,)) * len(table)
        table.only_thought = bytearray(len(table))
        table.has_error = bytearray(len(table))
        table.answer = array("q", bytes(8 * len(table)))
        return
    has_record = matching.has_record
    table.truncated = bytearray(placed(records.truncated, has_record, UNKNOWN))
    empty = bytes(placed(records.empty, has_record, UNKNOWN))
    table.empty = bytearray(empty.translate(EMPTY))
    table.only_thought = bytearray(empty.translate(ONLY_THOUGHT))
    table.has_error = bytearray(placed(records.has_error, has_record, NO))
    table.answer = array("q", placed(records.answer, has_record, 0))
    for name, column in records.components.items():
        metric = MetricColumn(name, column, None)
        table.components[name] = _spread(metric, records, matching)


def _spread(
    metric: MetricColumn, records: RecordColumns, matching: Matching
) -> "array[float]":
    found = metric.floats_at(range(len(records)))
    values = [nan if value is None else value for value in found]
    return array("d", placed(values, matching.has_record, nan))
