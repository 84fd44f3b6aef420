"""Merge: the shards' files become the output's own, each rollout once.

The merged files are written whole before a shard's file is removed, so that a kill at
any moment leaves every record in at least one file; merging again drops the copies.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tasks.adapters.jsonl import located, parse_object, read_lines, replace_file
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.models import MergeSummary
from tasks.core.records import rollout_key


def merge_shards(files: RunFiles) -> MergeSummary:
    """Merge every shard on disk into the output. The caller holds the output's lock.

    Raises:
        RecordError: a line cannot be read; names file and line.
    """
    shards = files.shards()
    if not shards:
        return MergeSummary(path=str(files.rollouts), num_shards=0, merged=0, copies=0)
    merged, copies = _merge(
        files.rollouts, [shard.rollouts for shard in shards], rollout_key
    )
    _merge(files.failures, [shard.failures for shard in shards], _attempt)
    for shard in shards:
        shard.rollouts.unlink()
        shard.failures.unlink(missing_ok=True)
    return MergeSummary(
        path=str(files.rollouts),
        num_shards=len(shards),
        merged=merged,
        copies=copies,
    )


def _attempt(failure: Mapping[str, Any]) -> Hashable:
    return (*rollout_key(failure), failure.get(wire.ATTEMPT_INDEX))


def _merge(
    target: Path,
    sources: Sequence[Path],
    identity: Callable[[Mapping[str, Any]], Hashable],
) -> tuple[int, int]:
    """Write the target's lines, then the sources' that are new; count both kinds."""
    seen: set[Hashable] = set()
    merged = copies = 0

    def write(file: IO[bytes]) -> None:
        nonlocal merged, copies
        for path in [target, *sources]:
            if not path.exists():
                continue
            for line in read_lines(path):
                with located(path, line.number):
                    key = identity(parse_object(line.text))
                if key in seen:
                    copies += 1
                    continue
                seen.add(key)
                merged += path != target
                file.write(line.text + b"\n")

    replace_file(target, write)
    return merged, copies
