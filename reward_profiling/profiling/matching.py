"""Whether the records match the plan: each planned rollout once, and nothing else.

Source: `gym-contract.md` §4.1 step 2 and §4.8; the counts include masked records.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, Never

import msgspec

from reward_profiling.errors import (
    DuplicateRolloutError,
    MissingRolloutsError,
    UnknownRolloutError,
)
from reward_profiling.numerics.number_column import gathered
from reward_profiling.planning.on_disk.plan_columns import PlanColumns
from reward_profiling.planning.row_members import RolloutKey, shown_keys
from reward_profiling.profiling.key_order import (
    ascending,
    comparable_keys,
    equal_neighbours,
    task_spans,
)
from reward_profiling.profiling.records.record_columns import RecordColumns


class Completion(msgspec.Struct, frozen=True):
    """How much of the plan has a record; an input row is a (task, run key) pair."""

    planned: int
    collected: int
    masked: int
    total_input_rows: int
    complete_input_rows: int
    partial_input_rows: int
    missing_input_rows: int

    @property
    def missing(self) -> int:
        """Planned rollouts that have no record."""
        return self.planned - self.collected

    @property
    def percent(self) -> float:
        """Share collected, in percent as Gym prints it; 100.0 for an empty plan."""
        return 100.0 * self.collected / self.planned if self.planned else 100.0


class Matching(msgspec.Struct, frozen=True):
    """A plan and its records, which are in key order, side by side."""

    plan_order: Sequence[int]
    """Rows of the plan in ascending key order."""
    has_record: bytes
    """For each of them, whether it has a record: the next one."""

    @property
    def plan_of(self) -> Sequence[int]:
        """Row of the plan of each record."""
        if 0 not in self.has_record:
            return self.plan_order
        return list(compress(self.plan_order, self.has_record))

    @property
    def rows_with_record(self) -> Sequence[int]:
        """The table's row of each record."""
        every = range(len(self.has_record))
        return (
            every if 0 not in self.has_record else [*compress(every, self.has_record)]
        )


def match(
    plan: PlanColumns, records: RecordColumns, *, allow_partial: bool
) -> Matching:
    """Match records, in key order, to the plan; the checks come in Gym's order.

    Raises:
        DuplicateRolloutError: a key stands twice among the rows or the records.
        UnknownRolloutError: a record belongs to no planned row, partial or not.
        MissingRolloutsError: rows lack a record and `allow_partial` is false.
    """
    if plan.task == records.task and plan.rollout == records.rollout:
        (keys,) = comparable_keys(records)
        if next(equal_neighbours(keys), None) is None:
            return Matching(range(len(plan)), b"\1" * len(plan))
    planned_keys, collected = comparable_keys(plan, records)
    plan_order = ascending(planned_keys)
    planned = gathered(planned_keys, plan_order)
    for row in equal_neighbours(planned):
        _refuse_second("materialized input row", plan.key(plan_order[row]))
    for row in equal_neighbours(collected):
        _refuse_second("rollout record", records.key(row))
    if list(planned) == collected:
        return Matching(plan_order, b"\1" * len(planned))
    has_record, unknown = _joined(planned, collected)
    if unknown:
        raise UnknownRolloutError(
            f"{len(unknown)} rollout records belong to no materialized input row:"
            f" {shown_keys(records.key(row) for row in unknown)}."
            " Do the two files come from the same run?"
        )
    if not allow_partial and 0 in has_record:
        missing = [r for r, has in zip(plan_order, has_record, strict=True) if not has]
        raise MissingRolloutsError(
            f"{len(missing)} of {len(plan)} planned rollouts have no record:"
            f" {shown_keys(plan.key(row) for row in missing)}. Collect the rest by"
            " running `run` or `collect` again, or profile the others with"
            " --allow-partial."
        )
    return Matching(plan_order, bytes(has_record))


def _refuse_second(what: str, key: RolloutKey) -> Never:
    raise DuplicateRolloutError(f"{what} {key} is in the file twice")


def _joined(
    planned: Sequence[Any], collected: Sequence[Any]
) -> tuple[bytearray, list[int]]:
    """Return which planned keys were collected, and which records were not planned."""
    has_record = bytearray(len(planned))
    unknown = []
    at, last = 0, len(planned)
    for row, key in enumerate(collected):
        while at < last and planned[at] < key:
            at += 1
        if at < last and planned[at] == key:
            has_record[at] = 1
        else:
            unknown.append(row)
    return has_record, unknown


def completion_of(
    plan: PlanColumns, records: RecordColumns, matching: Matching
) -> Completion:
    """Count how much of the plan has a record."""
    run_keys = [key for _, key in plan.runners]
    runners = gathered(plan.runner, matching.plan_order)
    has_record = matching.has_record
    total = complete = untouched = 0
    for start, stop in task_spans(gathered(plan.task, matching.plan_order)):
        for planned, done in _by_run_key(
            runners[start:stop], has_record[start:stop], run_keys
        ):
            total += 1
            complete += done == planned
            untouched += not done
    return Completion(
        planned=len(plan),
        collected=len(records),
        masked=sum(records.masked),
        total_input_rows=total,
        complete_input_rows=complete,
        partial_input_rows=total - complete - untouched,
        missing_input_rows=untouched,
    )


def _by_run_key(
    runners: Sequence[int], has_record: bytes, run_keys: Sequence[str | None]
) -> Iterable[tuple[int, int]]:
    """Return how many rollouts of a task each run key has: planned, and collected."""
    if len(set(runners)) == 1:
        return [(len(runners), sum(has_record))]
    planned: Counter[str | None] = Counter()
    done: Counter[str | None] = Counter()
    for runner, has in zip(runners, has_record, strict=True):
        planned[run_keys[runner]] += 1
        done[run_keys[runner]] += has
    return [(count, done[key]) for key, count in planned.items()]


def placed(
    values: Sequence[Any],
    has_record: bytes,
    unknown: Any,  # noqa: ANN401 - of the values' type
) -> Sequence[Any]:
    """Give every planned rollout its value; `unknown` to one without a record."""
    if 0 not in has_record:
        return values
    found: Any
    found, filler = _begun(values, unknown)
    start, taken = 0, 0
    while start < len(has_record):
        stop = has_record.find(0, start)
        stop = len(has_record) if stop < 0 else stop
        found += values[taken : taken + stop - start]
        taken += stop - start
        start = has_record.find(1, stop)
        start = len(has_record) if start < 0 else start
        found += filler * (start - stop)
    return found  # type: ignore[no-any-return]


def _begun(values: Sequence[Any], unknown: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return an empty sequence of the values' kind, and one with `unknown` alone."""
    if isinstance(values, array):
        return array(values.typecode), array(values.typecode, (unknown,))
    if isinstance(values, bytes | bytearray):
        return bytearray(), bytes((unknown,))
    return [], [unknown]
