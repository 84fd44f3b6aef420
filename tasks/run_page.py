"""What a run tells: its page and its log in Prefect, and whoever watches the process.

Prefect's server may be slow or away: reports are made beside the collection, at most
every few seconds, each with a time limit, and one that fails is dropped.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact
from prefect.exceptions import PrefectException

from tasks.core.progress import Progress
from tasks.core.reporting import progress_line, slowest_rollouts
from tasks.core.starting import Changes, ObserveServers, ServerState
from tasks.operations.watching import watcher
from tasks.operations.window import Observer

REPORT_SECONDS = 5.0
_LIMIT_SECONDS = 10.0
_MAX_NOTES = 10


def tell(message: str) -> None:
    """Say one sentence in the run's log, and to the process's watcher."""
    get_run_logger().info(message)
    watcher.get().say(message)


def tell_warning(message: str) -> None:
    """Say what a person should know."""
    get_run_logger().warning(message)
    watcher.get().warn(message)


def servers_observer() -> ObserveServers:
    """Return an observer that logs each change of a server's state once."""
    logger, watch, changes = get_run_logger(), watcher.get().watch_servers, Changes()

    def observe(states: Sequence[ServerState]) -> None:
        watch(states)
        for state in changes.of(states):
            logger.info(state.line)

    return observe


class _Latest:
    """The newest numbers, and the notes already logged."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self.num_notes = 0


@asynccontextmanager
async def progress_observer(key: str) -> AsyncIterator[Observer]:
    """Yield an observer that reports to Prefect and to the process's watcher."""
    latest = _Latest()
    logger = get_run_logger()
    watch = watcher.get().watch

    def observe(progress: Progress, note: str | None) -> None:
        latest.progress = progress
        watch(progress)
        if note is None:
            return
        latest.num_notes += 1
        if latest.num_notes <= _MAX_NOTES:
            tell_warning(note)
        if latest.num_notes == _MAX_NOTES:
            tell_warning("further notes of this shard are in its files only")

    reporting = asyncio.create_task(_report_for_ever(key, latest))
    try:
        yield observe
    finally:
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting
        if latest.progress is not None:
            logger.info(progress_line(latest.progress, time.monotonic()))
            if slowest := slowest_rollouts(latest.progress):
                tell(slowest)


async def _report_for_ever(key: str, latest: _Latest) -> None:
    artifact: UUID | None = None
    try:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            if latest.progress is not None:
                artifact = await _report(key, artifact, latest.progress)
    finally:
        if latest.progress is not None:
            await _report(key, artifact, latest.progress)


async def _report(key: str, artifact: UUID | None, progress: Progress) -> UUID | None:
    """Create or update the progress artifact; without an answer, leave it for later."""
    percent = 100.0 * progress.done / progress.planned if progress.planned else 100.0
    said = progress_line(progress, time.monotonic())
    async with dropped_when_away():
        if artifact is None:
            return await acreate_progress_artifact(percent, key=key, description=said)
        await aupdate_progress_artifact(artifact, percent, description=said)
    return artifact


@asynccontextmanager
async def dropped_when_away() -> AsyncIterator[None]:
    """Give up a report when Prefect's server does not take it in time."""
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            yield
    except (httpx.HTTPError, OSError, PrefectException) as error:
        get_run_logger().debug("Prefect's server did not take a report: %s", error)
