"""One row per planned rollout, in columns: the source of every number about rewards.

The table holds no text of the rollouts, so its size is rollouts times metrics. Rows are
in ascending key order (task, then rollout), whatever the order of the lines.
"""

from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Literal, get_args

import msgspec

from reward_profiling.profiling.key_order import task_spans


class RolloutStatus(IntEnum):
    """What became of a planned rollout."""

    SCORED = 0
    """Its reward is a finite number and counts."""
    UNSCORED = 1
    """It has a record, and its reward is missing, null, text or not finite."""
    MASKED = 2
    """It has a record that the server masked: its reward does not count."""
    FAILED = 3
    """It has no record, and at least one recorded failure."""
    MISSING = 4
    """It has neither."""


StatusName = Literal["scored", "unscored", "masked", "failed", "missing"]
"""What a `RolloutStatus` is called in files."""

STATUS_NAMES: tuple[StatusName, ...] = get_args(StatusName)
"""`STATUS_NAMES[status]` is the name of a `RolloutStatus`."""

NO = 0
YES = 1
UNKNOWN = 2
"""The three values of a flag: a byte each."""

EMPTY = bytes((NO, YES, UNKNOWN, YES)) + bytes(252)
"""Translates a record's `empty` into a flag."""
ONLY_THOUGHT = bytes((NO, NO, NO, YES)) + bytes(252)
"""Translates it into whether there is only thinking."""
THOUGHT = 3
"""Of a record's `empty` alone: YES, since the reply holds nothing but thinking."""


class RolloutTable(msgspec.Struct):
    """Every planned rollout of a run; all columns have one entry per row."""

    tasks: list[Any] = msgspec.field(default_factory=list)
    """Distinct task indices (ints or text), ascending."""
    agents: list[str] = msgspec.field(default_factory=list)
    """Distinct names of agents, ascending."""

    task: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """Position of the row's task in `tasks`; never falls from row to row."""
    rollout: list[Any] = msgspec.field(default_factory=list)
    """Rollout index, as it stands in the file."""
    agent: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """Position of the row's agent in `agents`."""
    status: bytearray = msgspec.field(default_factory=bytearray)
    """A `RolloutStatus` each."""
    reward: "array[float]" = msgspec.field(default_factory=lambda: array("d"))
    """Reward of a scored row; NaN in every other row."""
    output_tokens: "array[float]" = msgspec.field(default_factory=lambda: array("d"))
    """`response.usage.output_tokens`, or its `completion_tokens`; NaN where unknown."""
    truncated: bytearray = msgspec.field(default_factory=bytearray)
    """Whether the reply was cut off (`response.incomplete_details`, `status`)."""
    empty: bytearray = msgspec.field(default_factory=bytearray)
    """Whether the reply holds neither text nor a call of a tool, thoughts aside."""
    only_thought: bytearray = msgspec.field(default_factory=bytearray)
    """Of the empty ones, whether the reply holds thinking and nothing after it."""
    has_error: bytearray = msgspec.field(default_factory=bytearray)
    """Whether the record holds an error beside its reward."""
    answer: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """64-bit digest of the reply's text and calls; 0 where unknown. Equal answers have
    equal digests, within a run and between runs."""
    attempts: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    """Recorded failures of the rollout, whether it was collected in the end or not."""
    metrics: dict[str, "array[float]"] = msgspec.field(default_factory=dict)
    """Every numeric column of the records but the reward, usage included, in Gym's
    column order; NaN where a record has none."""
    components: dict[str, "array[float]"] = msgspec.field(default_factory=dict)
    """The numbers of `reward_components`, by name; NaN where a record has none."""
    failure_class: dict[int, str] = msgspec.field(default_factory=dict)
    """Class of the last recorded failure, by row."""

    def __len__(self) -> int:
        """Return the number of planned rollouts."""
        return len(self.status)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Return each task's rows as (start, stop), in order of task."""
        return task_spans(self.task)
