"""What an output's journals say of its rollouts, read from the files alone."""

from reward_profiling.collecting.dispatcher import shard_rollouts
from reward_profiling.collecting.ledger import Ledger
from reward_profiling.collecting.on_disk.journal import read_journal
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.row_members import RolloutKey


def read_ledger(files: RunFiles) -> Ledger:
    """Read what an output's journals say, shards included; nothing is mended."""
    ledger = Ledger()
    read_parts(files, ledger, None)
    return ledger


def count_collected(files: RunFiles) -> tuple[int, int]:
    """Count the planned rollouts, and those of them that have a record.

    Raises:
        ConfigError: there is no plan.
    """
    ledger = read_ledger(files)
    planned = collected = 0
    for rollout in shard_rollouts(files.materialized_inputs, 0, 1):
        planned += 1
        collected += rollout.key in ledger.collected
    return planned, collected


def read_parts(files: RunFiles, ledger: Ledger, own: RunFiles | None) -> int:
    """Read an output's journals; damaged lines are set aside in our `own` only."""

    def add_record(key: RolloutKey, _: bool) -> None:  # noqa: FBT001 - a callback
        ledger.add_record(key)

    def add_failure(key: RolloutKey, terminal: bool) -> None:  # noqa: FBT001
        ledger.add_failure(key, terminal=terminal)

    aside = 0
    for part in dict.fromkeys([files, *files.shards(), *([own] if own else [])]):
        damaged = part.damaged if part == own else None
        aside += read_journal(part.rollouts, add_record, damaged)
        aside += read_journal(part.failures, add_failure, damaged)
    return aside
