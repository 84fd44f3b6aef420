"""Lists for a run's page: which rollouts failed and which were slow, and why."""

import heapq
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from reward_profiling import wire
from reward_profiling.collecting.on_disk.failures import read_failures, words_of
from reward_profiling.collecting.on_disk.timings import read_timings
from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.files.json_lines import read_lines
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.document import Insights
from reward_profiling.insights.insights_file import read_insights_head
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.run_report import (
    MAX_ROWS,
    MAX_SLOW,
    FailedRollout,
    RunFacts,
    SlowRollout,
)

_NOT_SAID = "unknown"


def read_run_facts(summary: RunSummary, files: RunFiles) -> RunFacts:
    """Read what a run's page shows; what cannot be read is not shown."""
    return RunFacts(
        summary=summary,
        insights=_insights(files),
        failed=_failed(files) if summary.failed else [],
        slowest=_slowest(files),
        folder=str(files.rollouts.absolute().parent),
        failures_file=files.failures.name,
        timings_file=files.timings.name,
    )


def _insights(files: RunFiles) -> Insights | None:
    try:
        return read_insights_head(files.insights)
    except (ConfigError, RecordError):
        return None


def _failed(files: RunFiles) -> list[FailedRollout]:
    """Return the first failed rollouts in key order, each with its last failure."""
    agents = dict(_failed_keys(files))
    # The profile has named a line that is damaged already.
    failures = read_failures(files.failures, skip_damaged=True) if agents else ()
    last = {key: failure for key, failure in failures if key in agents}
    return [
        FailedRollout(
            task_index=key[0],
            rollout_index=key[1],
            agent=agent,
            failure_class=str(last.get(key, {}).get(wire.FAILURE_CLASS, _NOT_SAID)),
            message=words_of(last.get(key, {})),
        )
        for key, agent in agents.items()
    ]


def _failed_keys(files: RunFiles) -> Iterator[tuple[RolloutKey, str]]:
    """Yield the first failed rollouts and their agents, as the insights list them."""
    found = 0
    for task in _tasks(files):
        for index, state in zip(
            task.rollouts.rollout_index, task.rollouts.state, strict=True
        ):
            if state == "failed" and found < MAX_ROWS:
                found += 1
                yield (task.task_index, index), task.agent
        if found == MAX_ROWS:
            return


class _Rollouts(msgspec.Struct):
    rollout_index: list[int | str] = []
    state: list[str] = []


class _Task(msgspec.Struct):
    """What of a task's insight says which of its rollouts failed."""

    task_index: int | str
    agent: str
    rollouts: _Rollouts = msgspec.field(default_factory=_Rollouts)


_DECODE_TASK = msgspec.json.Decoder(_Task).decode


def _tasks(files: RunFiles) -> Iterator[_Task]:
    """Yield the tasks of the insights, one a line; none where they list no rollouts."""
    if not files.insights.exists():
        return
    for line in read_lines(files.insights):
        with suppress(msgspec.DecodeError):
            yield _DECODE_TASK(line.text.rstrip(b","))


def _slowest(files: RunFiles) -> list[SlowRollout]:
    """Return the rollouts that took longest, the slowest first."""
    return heapq.nlargest(MAX_SLOW, _timings(files), key=lambda slow: slow.seconds)


def _timings(files: RunFiles) -> Iterator[SlowRollout]:
    for timing in read_timings(files.timings):
        if timing.rollout_index is not None:
            yield SlowRollout(timing.seconds, timing.task_index, timing.rollout_index)
