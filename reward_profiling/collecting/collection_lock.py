"""The lock of a collection: a whole output, or one shard's own files."""

from collections.abc import Iterator
from contextlib import contextmanager

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.errors import OutputLockedError
from reward_profiling.files.locking.lock_holder import living_holder
from reward_profiling.files.locking.output_lock import (
    living_shards,
    output_lock,
    refusal,
)
from reward_profiling.files.run_files import RunFiles


@contextmanager
def collection_lock(files: RunFiles, options: CollectOptions) -> Iterator[None]:
    """Hold what a collection writes: the whole output, or one shard's own files.

    Raises:
        OutputLockedError: another process holds it, or a shard of another dealing of
            the same plan, which would collect some rollouts twice; names that process.
    """
    if options.shard is None:
        with output_lock(files.lock):
            yield
        return
    _, count = options.shard_of
    own = files.shard(*options.shard_of)
    with output_lock(files.lock, shared=True), output_lock(own.lock):
        # Take our own lock before looking at others: if two start at the same moment,
        # at least one of them sees the other.
        if (owner := living_holder(files.lock)) is not None:
            raise OutputLockedError(refusal(str(owner)))
        for dealt, shard_owner in living_shards(files.lock):
            if dealt.count != count:
                raise OutputLockedError(
                    f"{shard_owner}, is collecting shard {dealt} of this output, so"
                    f" shard {options.shard} would collect some of its rollouts again."
                    f" Give --shard I/{dealt.count}, or wait for it"
                )
        yield
