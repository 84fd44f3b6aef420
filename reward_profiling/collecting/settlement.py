"""Whether a run has nothing to do: the same plan, and none of it owed."""

from reward_profiling.collecting.ledger import Ledger, read_ledger
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.errors import RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.planning.materialization import is_planned
from reward_profiling.planning.on_disk.planned_rollouts import read_planned


def owes_nothing(
    checked: CheckedInput, files: RunFiles, options: CollectOptions
) -> bool:
    """Say whether the input is planned as asked for and every rollout is settled.

    Nothing is mended here: a damaged line is no record, and owed.
    """
    if not files.rollouts.exists() or not files.materialized_inputs.exists():
        return False
    ledger = read_ledger(files)
    ledger.max_attempts = options.max_attempts
    ledger.retry_given_up = options.retry_given_up
    return (
        not _is_any_owed(ledger, files)
        and _is_finished(files)
        and is_planned(checked, files)
    )


def _is_any_owed(ledger: Ledger, files: RunFiles) -> bool:
    """Say whether a rollout is owed; a damaged plan owes what it has lost."""
    try:
        return any(
            ledger.is_owed(planned.key)
            for planned in read_planned(files.materialized_inputs)
        )
    except RecordError:
        return True


def _is_finished(files: RunFiles) -> bool:
    """Say whether what comes after the collection was done, too."""
    if files.shards():
        return False
    if not files.rollouts.stat().st_size:
        return True  # without a record there is nothing to aggregate
    metrics, records = files.aggregate_metrics, files.rollouts
    return metrics.exists() and metrics.stat().st_mtime >= records.stat().st_mtime
