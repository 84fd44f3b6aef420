"""What a shard that is collected elsewhere came to, left beside its records.

It crosses the shared folder, as the records do: a result in Prefect's own storage lies
on the machine that made it.
"""

from pathlib import Path

from pydantic import ValidationError

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.json_lines import replace_bytes
from reward_profiling.files.run_files import RunFiles


def _path(shard: RunFiles) -> Path:
    return shard.rollouts.with_name(f".{shard.rollouts.name}.summary")


def leave_summary(shard: RunFiles, summary: ShardSummary) -> None:
    """Leave what a shard came to for the run that leads it."""
    replace_bytes(_path(shard), summary.model_dump_json().encode())


def found_summary(shard: RunFiles) -> ShardSummary | None:
    """Return what a shard came to; None when it has not come to its end."""
    try:
        return ShardSummary.model_validate_json(_path(shard).read_bytes())
    except (OSError, ValidationError):
        return None


def drop_summary(shard: RunFiles) -> None:
    """Remove what an earlier collection of the shard left."""
    _path(shard).unlink(missing_ok=True)
