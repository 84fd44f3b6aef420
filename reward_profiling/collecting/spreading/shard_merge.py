"""Merge: moves the shards' records into the output's own files, each rollout once.

The merged files are complete before a shard's file is removed, so a kill at any moment
leaves every record in at least one file; merging again drops the copies. A shard that
is still being collected is left alone.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import IO

from reward_profiling.collecting.on_disk.failures import attempt_of
from reward_profiling.collecting.on_disk.journal import read_journal
from reward_profiling.collecting.shard_summary import MergeSummary
from reward_profiling.files.json_lines import (
    located,
    parse_record,
    read_lines,
    replace_file,
)
from reward_profiling.files.locking.lock_holder import living_holder
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.shard_names import Dealt
from reward_profiling.planning.row_members import rollout_key


def merge_shards(files: RunFiles) -> MergeSummary:
    """Merge every shard on disk into the output. The caller holds the output's lock.

    Raises:
        RecordError: a line cannot be read; names file and line.
    """
    found = files.shards()
    # No shard can start while the caller holds the output's lock.
    shards = [shard for shard in found if living_holder(shard.lock) is None]
    busy = tuple(str(shard.dealt) for shard in found if shard not in shards)
    if not shards:
        return MergeSummary(
            path=str(files.rollouts), num_shards=0, merged=0, copies=0, busy_shards=busy
        )
    set_aside = sum(
        read_journal(path, _ignore, part.damaged)
        for part in [files, *shards]
        for path in (part.rollouts, part.failures)
    )
    merged, copies = _merge(
        files.rollouts, [shard.rollouts for shard in shards], _rollout
    )
    _merge(files.failures, [shard.failures for shard in shards], attempt_of)
    if timings := [s.timings for s in shards if s.timings.exists()]:
        _merge(files.timings, timings, bytes)
    for shard in shards:
        # Remove the rollouts file last: a shard is found by it, also after a kill.
        for path in (shard.timings, shard.failures, shard.rollouts, shard.lock):
            path.unlink(missing_ok=True)
    return MergeSummary(
        path=str(files.rollouts),
        num_shards=len(shards),
        merged=merged,
        copies=copies,
        set_aside=set_aside,
        missing_shards=tuple(_missing(found)),
        busy_shards=busy,
    )


def _ignore(*_: object) -> None:
    """Take nothing: reading alone sets damaged lines aside."""


def _rollout(line: bytes) -> Hashable:
    return rollout_key(parse_record(line))


def _missing(shards: Sequence[RunFiles]) -> Iterator[str]:
    """Name the shards that are not there although a sibling is."""
    indices: dict[int, set[int]] = {}
    for shard in shards:
        if (dealt := shard.dealt) is not None:
            indices.setdefault(dealt.count, set()).add(dealt.index)
    for count, there in sorted(indices.items()):
        for index in sorted(set(range(count)) - there):
            yield str(Dealt(index, count))


def _merge(
    target: Path,
    sources: Sequence[Path],
    identity: Callable[[bytes], Hashable],
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
                    key = identity(line.text)
                if key in seen:
                    copies += 1
                    continue
                seen.add(key)
                merged += path != target
                file.write(line.text + b"\n")

    replace_file(target, write)
    return merged, copies
