"""`collect` and `aggregate`: over HTTP, and without Prefect."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.cli.exit_codes import STOPPED, ExitCode
from reward_profiling.cli.option_groups import (
    ADAPTIVE,
    COLLECTION,
    METRICS,
    PLAN,
    SERVERS,
    fields_of,
)
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.live import Live
from reward_profiling.cli.terminal.screen import complain, err, out, warn
from reward_profiling.collecting.on_disk.timings import lost_replies
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.progress import ObserveProgress
from reward_profiling.library.collecting import (
    START_SECONDS,
    CollectionSummary,
    Watcher,
)
from reward_profiling.library.collecting import aggregate as aggregate_output
from reward_profiling.library.collecting import collect as collect_owed
from reward_profiling.reporting.summary_words import slowest_rollouts, zeros
from reward_profiling.stop_scope import StopScope

_COLLECT = CollectOptions()
_AGGREGATE = AggregateOptions()
_OUTPUT = Annotated[Path, Parameter(group=PLAN)]
_HEAD_URL = Annotated[str, Parameter(group=SERVERS)]
_START_TIMEOUT = Parameter(group=SERVERS, validator=Number(gt=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Adaptive(AdaptiveOptions):
    """Adaptive repeats, where no profile follows that says what passes."""

    pass_threshold: float = 1.0
    """What counts as passing for --adaptive: a reward of at least this."""


_ADAPTIVE = Adaptive()


def collect(
    *,
    output: _OUTPUT,
    head_url: _HEAD_URL,
    start_timeout: Annotated[float, _START_TIMEOUT] = START_SECONDS,
    options: Annotated[CollectOptions, fields_of(COLLECTION)] = _COLLECT,
    adaptive: Annotated[Adaptive, fields_of(ADAPTIVE)] = _ADAPTIVE,
) -> int:
    """Collect what a plan still owes, from running servers.

    Args:
        output: The rollouts file; its plan lies beside it.
        head_url: Head server of the running servers, such as http://127.0.0.1:11000.
        start_timeout: Seconds until every server must be ready.
        options: How owed rollouts are collected.
        adaptive: Whether open tasks get more repeats.
    """
    scope = StopScope()

    async def collected() -> CollectionSummary:
        with scope.hearing_signals():
            return await collect_owed(
                output,
                head_url,
                options,
                adaptive=adaptive,
                pass_threshold=adaptive.pass_threshold,
                start_timeout=start_timeout,
                watcher=_Terminal(options.concurrency),
                scope=scope,
            )

    try:
        summary = asyncio.run(collected())
    except asyncio.CancelledError:
        if scope.exit_code is None:
            raise
        complain(STOPPED)
        return scope.exit_code
    return _show(summary, scope.exit_code)


class _Spoken(Watcher):
    """Prints what is said."""

    def say(self, sentence: str) -> None:
        err.print(sentence)


class _Terminal(_Spoken):
    """Shows how a collection goes, too."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency

    @contextmanager
    def collecting(self) -> Iterator[ObserveProgress]:
        err.print(f"at most {self._concurrency} rollouts in flight", style="dim")
        live = Live()
        with live.showing():
            yield live.observe
        for progress in live.seen:
            if slowest := slowest_rollouts(progress):
                live.say(slowest)


def _show(summary: CollectionSummary, code: int | None) -> int:
    """Say what was collected; `code` is the exit code of a signal, if one came."""
    out.print(f"{summary.collected} of {summary.planned} rollouts collected")
    out.show(file_lines([summary.path]))
    if lost := sum(shard.replies_lost for shard in summary.shards):
        warn(lost_replies(lost))
    if code is not None:
        complain(STOPPED)
        return code
    if summary.stopped:
        (complain if summary.is_failed else warn)(summary.stopped)
    if summary.is_failed:
        return ExitCode.FAILED
    return ExitCode.PARTIAL if summary.missing else ExitCode.WHOLE


def aggregate(
    *,
    output: _OUTPUT,
    head_url: _HEAD_URL,
    options: Annotated[AggregateOptions, fields_of(METRICS)] = _AGGREGATE,
) -> int:
    """Ask the environment servers for their own metrics over what was collected.

    Args:
        output: The rollouts file.
        head_url: Head server of the running servers, such as http://127.0.0.1:11000.
        options: Which rollouts without a reward count as zero.
    """
    asked = aggregate_output(output, head_url, options, watcher=_Spoken())
    summary = asyncio.run(asked)
    for warning in summary.warnings:
        warn(warning)
    if told := zeros(summary):
        out.print(told)
    if summary.path is None:
        complain("no environment server gave metrics")
        return ExitCode.FAILED
    out.print(f"metrics of {summary.num_servers} environment servers")
    out.show(file_lines([summary.path]))
    return ExitCode.WHOLE
