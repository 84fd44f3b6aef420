"""What a shard that is collected elsewhere came to, left beside its records.

It crosses the shared folder, as the records do: a result in Prefect's own storage lies
on the machine that made it.
"""

from pathlib import Path

import msgspec

from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.files.json_lines import replace_bytes
from reward_profiling.files.run_files import RunFiles


def _path(shard: RunFiles) -> Path:
    return shard.rollouts.with_name(f".{shard.rollouts.name}.summary")


def leave_summary(shard: RunFiles, summary: ShardSummary) -> None:
    """Leave what a shard came to for the run that leads it."""
    replace_bytes(_path(shard), msgspec.json.encode(summary))


def found_summary(shard: RunFiles) -> ShardSummary | None:
    """Return what a shard came to; None when it has not come to its end."""
    try:
        return msgspec.json.decode(_path(shard).read_bytes(), type=ShardSummary)
    except (OSError, msgspec.DecodeError):
        return None


def drop_summary(shard: RunFiles) -> None:
    """Remove what an earlier collection of the shard left."""
    _path(shard).unlink(missing_ok=True)
