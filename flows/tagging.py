"""The tag by which automations know the command's runs, and only the runs.

Prefect asks its server for a slot for each tag of each step: with a tag on the steps,
no step could begin while the server is away.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from prefect import tags
from prefect.context import TagsContext

from reward_profiling.reporting.outcome import RUN_TAG


@contextmanager
def tagged_run() -> Iterator[None]:
    """Tag the run that is called in the block, as deployed runs are tagged."""
    with tags(RUN_TAG):
        yield


@contextmanager
def untagged_steps() -> Iterator[None]:
    """Keep the run's tags from the steps that are called in the block."""
    with TagsContext(current_tags=set()):
        yield
