"""Interpretation of a table: how rows with incomplete information are read."""

import math

import msgspec

from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import (
    NO,
    UNKNOWN,
    YES,
    RolloutStatus,
    RolloutTable,
)


def interpret(table: RolloutTable, options: ProfileOptions) -> RolloutTable:
    """Return a copy of the table, read according to the options."""
    table = _with_whole_replies(table)
    return _without_empty(table) if options.leave_out_empty else table


def _with_whole_replies(table: RolloutTable) -> RolloutTable:
    """Read replies without `incomplete_details` as complete, if others have it.

    Some servers write that field only for replies that were cut off. If no reply of an
    agent is known to be cut off, its replies stay unknown.
    """
    telling = {
        agent for agent, cut in zip(table.agent, table.truncated, strict=True)
        if cut == YES
    }  # fmt: skip
    if not telling:
        return table
    truncated = bytearray(table.truncated)
    for row, cut in enumerate(truncated):
        if cut == UNKNOWN and table.agent[row] in telling and _has_reply(table, row):
            truncated[row] = NO
    return msgspec.structs.replace(table, truncated=truncated)


def _has_reply(table: RolloutTable, row: int) -> bool:
    has_tokens = not math.isnan(table.output_tokens[row])
    return has_tokens or table.empty[row] != UNKNOWN


def _without_empty(table: RolloutTable) -> RolloutTable:
    """Mask the rows whose reply holds no answer: they are counted, not averaged."""
    status, reward = bytearray(table.status), table.reward[:]
    for row, empty in enumerate(table.empty):
        if empty == YES and status[row] == RolloutStatus.SCORED:
            status[row] = RolloutStatus.MASKED
            reward[row] = math.nan
    return msgspec.structs.replace(table, status=status, reward=reward)
