"""Whether the records answer the plan: each planned rollout once, and nothing else.

Source: `gym-contract.md` §4.1 step 2 and §4.8; the counts include masked records.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.core.errors import (
    DuplicateRolloutError,
    MissingRolloutsError,
    UnknownRolloutError,
)
from tasks.core.records import PlannedRow, Record, RolloutKey

_SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class Completion:
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


def check_completeness(
    rows: Sequence[PlannedRow], records: Sequence[Record], *, allow_partial: bool
) -> Completion:
    """Match records to rows and count; the checks come in Gym's order.

    Raises:
        DuplicateRolloutError: a key stands twice among the rows or the records.
        UnknownRolloutError: a record belongs to no planned row, partial or not.
        MissingRolloutsError: rows lack a record and `allow_partial` is false.
    """
    planned = [row.key for row in rows]
    collected = [record.key for record in records]
    _refuse_duplicates(planned, "materialized input row")
    _refuse_duplicates(collected, "rollout record")
    unknown = set(collected).difference(planned)
    if unknown:
        raise UnknownRolloutError(
            f"{len(unknown)} rollout records belong to no materialized input row:"
            f" {shown_keys(unknown)}. Do the two files come from the same run?"
        )
    missing = set(planned).difference(collected)
    if missing and not allow_partial:
        raise MissingRolloutsError(
            f"{len(missing)} of {len(planned)} planned rollouts have no record:"
            f" {shown_keys(missing)}. Collect the rest by running the same command"
            " again, or profile what there is with --allow-partial."
        )
    return _completion(rows, records)


def _refuse_duplicates(keys: Iterable[RolloutKey], what: str) -> None:
    seen: set[RolloutKey] = set()
    for key in keys:
        if key in seen:
            raise DuplicateRolloutError(f"{what} {key} stands in the file twice")
        seen.add(key)


def shown_keys(keys: Iterable[RolloutKey]) -> str:
    """Return the first ten keys in order, as a person reads them."""
    ordered = sorted(keys, key=lambda key: [(isinstance(i, str), i) for i in key])
    names = [f"task {task} repeat {rollout}" for task, rollout in ordered[:_SHOWN_KEYS]]
    more = len(ordered) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _completion(rows: Sequence[PlannedRow], records: Sequence[Record]) -> Completion:
    done = {record.key for record in records}
    expected = Counter((row.key[0], row.run_key) for row in rows)
    completed = Counter((row.key[0], row.run_key) for row in rows if row.key in done)
    complete = sum(completed[task] == count for task, count in expected.items())
    untouched = sum(not completed[task] for task in expected)
    return Completion(
        planned=len(rows),
        collected=len(records),
        masked=sum(record.masked for record in records),
        total_input_rows=len(expected),
        complete_input_rows=complete,
        partial_input_rows=len(expected) - complete - untouched,
        missing_input_rows=untouched,
    )
