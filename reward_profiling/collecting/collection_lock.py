"""The lock of a collection: a whole output, or one shard's own files."""

from collections.abc import Iterator
from contextlib import contextmanager

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.errors import OutputLockedError
from reward_profiling.files.lock_holder import living_holder
from reward_profiling.files.output_lock import living_shards, output_lock, refusal
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
        # Our own lock is there before others are looked at: of two that start at the
        # same moment, one sees the other.
        if (owner := living_holder(files.lock)) is not None:
            raise OutputLockedError(refusal(str(owner)))
        for dealt, shard_owner in living_shards(files.lock):
            if dealt.count != count:
                raise OutputLockedError(
                    f"shard {dealt} of this output is being collected by"
                    f" {shard_owner}; shard {options.shard} would collect some of its"
                    f" rollouts twice. Give --shard I/{dealt.count}, or wait for it"
                )
        yield
