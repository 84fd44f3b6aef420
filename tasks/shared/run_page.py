"""Reports of a run: to its page and its log in Prefect, and to local observers.

Prefect's server may be slow or down: reports run beside the collection, at most every
few seconds, each with a time limit, and a report that fails is dropped.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
from prefect import get_run_logger, runtime
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.events import emit_event
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_URL
from prefect.utilities.urls import url_for

from reward_profiling.collecting.progress import ObserveProgress, Progress
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.artifact_keys import artifact_key
from reward_profiling.reporting.markdown import escaped
from reward_profiling.reporting.outcome import announcement, announcements
from reward_profiling.reporting.summary_words import progress_line, slowest_rollouts
from reward_profiling.servers.server_states import Changes, ObserveServers, ServerState
from reward_profiling.tasks.shared.prefect_internals import done_without
from reward_profiling.tasks.shared.present_run import Report, present_run
from reward_profiling.texts.visible import visible

if TYPE_CHECKING:
    from uuid import UUID

RESOURCE = "reward-profiling.output."
"""An event's resource: this prefix and the output's path."""
REPORT_SECONDS = 5.0
_LIMIT_SECONDS = 10.0
_END_SECONDS = 20.0
_PAUSE_SECONDS = 2.0
_MAX_NOTES = 10


def tell_start() -> None:
    """Say where the page of the present run is, and what Prefect lacks."""
    page = url_for("flow-run", runtime.flow_run.id)
    if PREFECT_API_URL.value() and page is not None:
        present_run().observer.say(f"page of this run: {page}")
    for lacking in done_without():
        tell_warning(lacking)


def tell_end(summary: RunSummary) -> None:
    """Give the summary of the run to the observer of the process."""
    present_run().observer.end(summary)


def tell(message: str) -> None:
    """Say one sentence in the run's log, and to the process's observer."""
    get_run_logger().info(visible(message))
    present_run().observer.say(message)


def tell_warning(message: str) -> None:
    """Say a warning in the run's log, and to the process's observer."""
    get_run_logger().warning(visible(message))
    present_run().observer.warn(message)


def servers_observer() -> ObserveServers:
    """Return an observer that logs each change of a server's state once."""
    logger, changes = get_run_logger(), Changes()
    told = present_run().observer.observe_servers

    def observe(states: Sequence[ServerState]) -> None:
        told(states)
        for state in changes.of(states):
            logger.info(visible(state.line))

    return observe


class _Latest:
    """The newest numbers, and the notes already logged."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self.num_notes = 0
        self.is_over = False


@asynccontextmanager
async def progress_observer(kind: str, output: Path) -> AsyncIterator[ObserveProgress]:
    """Yield an observer that reports to Prefect and to the process's observer.

    What is shown is of the `kind`, such as collect-shard-0, of an output.
    """
    key = artifact_key(kind, output)
    latest = _Latest()
    logger = get_run_logger()
    told = present_run().observer.observe

    def observe(progress: Progress, note: str | None) -> None:
        latest.progress = progress
        told(progress, None)  # notes go through the log below, which limits them
        if note is None:
            return
        latest.num_notes += 1
        if latest.num_notes <= _MAX_NOTES:
            tell_warning(note)
        if latest.num_notes == _MAX_NOTES:
            tell_warning("no further notes of this shard are logged; see its files")

    reporting = asyncio.create_task(_report_for_ever(key, latest))
    try:
        yield observe
    finally:
        latest.is_over = True
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting
        if latest.progress is not None:
            now = time.monotonic()
            logger.info(visible(progress_line(latest.progress, now, is_over=True)))
            if slowest := slowest_rollouts(latest.progress):
                tell(slowest)


async def _report_for_ever(key: str, latest: _Latest) -> None:
    report = _ProgressReport(key, latest)
    try:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            await taken(report)
    finally:
        if not await taken(report):
            present_run().owed.append(report)


class _ProgressReport:
    """Creates or updates one shard's progress on the page, with the latest numbers."""

    def __init__(self, key: str, latest: _Latest) -> None:
        self._key = key
        self._latest = latest
        self._artifact: UUID | None = None

    async def __call__(self) -> None:
        progress = self._latest.progress
        if progress is None:
            return
        done = progress.done / progress.planned if progress.planned else 1.0
        now, is_over = time.monotonic(), self._latest.is_over
        said = escaped(progress_line(progress, now, is_over=is_over))
        if self._artifact is None:
            self._artifact = await acreate_progress_artifact(
                100.0 * done, key=self._key, description=said
            )
        else:
            await aupdate_progress_artifact(
                self._artifact, 100.0 * done, description=said
            )


@asynccontextmanager
async def dropped_when_away() -> AsyncIterator[None]:
    """Drop a report if Prefect's server does not take it in time."""
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            yield
    except (httpx.HTTPError, OSError, PrefectException) as error:
        get_run_logger().debug("Prefect's server did not take a report: %s", error)


async def taken(report: Report) -> bool:
    """Make a report once; return whether Prefect's server took it in time."""
    async with dropped_when_away():
        await report()
        return True


async def show(*reports: Report) -> None:
    """Make a run's last reports, and those still owed.

    All files are written by now, so waiting for a server costs nothing but time: wait
    a while, but not in a process that was told to stop.
    """
    run, deadline = present_run(), time.monotonic() + _END_SECONDS
    for report in (*run.owed, *reports):
        while not await taken(report):
            if run.scope.exit_code is not None or time.monotonic() > deadline:
                return
            await asyncio.sleep(_PAUSE_SECONDS)
    run.owed.clear()


def table(
    kind: str, output: Path, rows: Sequence[dict[str, str]], caption: str
) -> Report:
    """Return a report that is a table; Prefect would read its cells as Markdown."""
    key = artifact_key(kind, output)
    cells = [{name: escaped(cell) for name, cell in row.items()} for row in rows]
    said = escaped(caption)
    return partial(acreate_table_artifact, cells, key=key, description=said)


def text(kind: str, output: Path, markdown: str, caption: str) -> Report:
    """Return a report that is a text in Markdown; its caption is none."""
    key = artifact_key(kind, output)
    said = escaped(caption)
    return partial(acreate_markdown_artifact, markdown, key=key, description=said)


def announce(summary: RunSummary) -> None:
    """Emit the events of a run's end; Prefect sends them beside the run.

    A run that was told to stop has not ended: it will be continued.
    """
    if present_run().scope.exit_code is not None:
        return
    _emit(announcements(summary), Path(summary.output), announcement(summary))


def announce_end(event: str, output: Path, message: str) -> None:
    """Emit the event of a run that was cancelled, or that broke; says why."""
    _emit([event], output, {"message": message})


def _emit(events: Sequence[str], output: Path, payload: dict[str, object]) -> None:
    place = str(output.absolute())
    resource = {
        "prefect.resource.id": f"{RESOURCE}{quote(place)}",
        "prefect.resource.name": place,
    }
    page = url_for("flow-run", runtime.flow_run.id)
    for event in events:
        # Prefect queues the event: the call does not wait, and Prefect logs errors.
        emit_event(event, resource, payload=payload | {"output": place, "page": page})
