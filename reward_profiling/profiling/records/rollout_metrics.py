"""`<stem>_rollout_metrics.parquet`: one row per planned rollout, in key order.

It is a table to analyse, and a later profile reads it instead of the records. Columns
without a leading underscore are for people: `COLUMNS` lists them. The others, and the
file's metadata, keep what these would lose (which numbers were integers, their order),
so that a profile made from the columns has the same bytes.

`_shape` is a number for all that is small about a record: position, from 1, in the
file's list of shapes; 0 where there is no record. `_own/<name>` is a number whose name
a column for people has. `_raw_reward` is the JSON of a reward that is no number.
"""

from typing import Literal, NamedTuple

import msgspec

from reward_profiling.files.source_marks import Glimpses, SourceMark
from reward_profiling.profiling.records.layouts import Layout
from reward_profiling.profiling.records.record_shapes import Field, Shape

VERSION = 4


class PublicColumn(NamedTuple):
    """A column for people."""

    name: str
    """Where a part of it is in angle brackets, any number of columns."""
    kind: str
    meaning: str


COLUMNS = (
    PublicColumn("task_index", "int64 or text", "Its task, as the plan numbers it."),
    PublicColumn("rollout_index", "int64 or text", "Its place among the task's."),
    PublicColumn("agent", "text", "Agent that was to run it."),
    PublicColumn("label", "text", "That agent's name in Gym's files; null for none."),
    PublicColumn("status", "text", "scored, unscored, masked, failed or missing."),
    PublicColumn("masked", "boolean", "Whether the server masked its reward."),
    PublicColumn("attempts", "int64", "Its recorded failures, 0 or more."),
    PublicColumn("failure_class", "text", "Class of the last one; null for none."),
    PublicColumn("reward", "double", "Its reward if it is scored."),
    PublicColumn(
        "<metric>",
        "int64 or double",
        "A number of its record or of its usage, under its own name; after metric/ if"
        " another column has that name.",
    ),
    PublicColumn("truncated", "boolean", "Whether its reply was cut off."),
    PublicColumn(
        "empty",
        "boolean",
        "Whether its reply has neither text nor calls, but thoughts.",
    ),
    PublicColumn(
        "has_error", "boolean", "Whether it holds an error beside its reward."
    ),
    PublicColumn("answer", "int64", "Digest of its reply's text and calls."),
    PublicColumn(
        "reward_components/<part>", "int64 or double", "A part of its reward."
    ),
    PublicColumn("file", "text", "File of its record, from the table's folder."),
    PublicColumn("line", "int64", "Line of its record in that file, from 1."),
)
"""A row is a planned rollout; null means that it has no record, or that its record
lacks the value. Columns come in this order; those of replies only if they were read."""


class DuplicateRecords(msgspec.Struct, frozen=True):
    """Records that were left out, since their rollout has an earlier one."""

    number: int = 0
    places: list[tuple[int, int]] = []
    """File and line of the first of them."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says of itself."""

    version: int = VERSION
    sources: list[SourceMark]
    """The files of records."""
    inputs: Glimpses
    """What the plan and the failures were when they were read."""
    outputs: Glimpses
    """What the files of the profile were when they had been written."""
    duplicates: DuplicateRecords
    has_replies: bool
    index_forms: tuple[Literal["int", "text", "json"], Literal["int", "text", "json"]]
    """How task and rollout indices are written."""
    layouts: list[Layout]
    fields: list[Field]
    shapes: list[Shape]
    strays: dict[int, str]
    """Class of records that are failures, by row of the table."""
