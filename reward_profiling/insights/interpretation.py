"""Interpretation of a table: what rows that do not say all of it are taken for."""

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
    """Return the table as the options have it read; the one given stays as it is."""
    table = _with_whole_replies(table)
    return _without_empty(table) if options.leave_out_empty else table


def _with_whole_replies(table: RolloutTable) -> RolloutTable:
    """Take replies that say nothing of it for whole, where others of the agent do.

    Some writers give `incomplete_details` to cut replies only. An agent none of whose
    replies is known to be cut off stays unknown.
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
    """Mask the rows whose reply holds no answer: counted, they decide nothing."""
    status, reward = bytearray(table.status), table.reward[:]
    for row, empty in enumerate(table.empty):
        if empty == YES and status[row] == RolloutStatus.SCORED:
            status[row] = RolloutStatus.MASKED
            reward[row] = math.nan
    return msgspec.structs.replace(table, status=status, reward=reward)
