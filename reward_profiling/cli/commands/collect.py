"""`collect` and `aggregate`: over HTTP, and without Prefect."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    AdaptiveSummary,
    round_in_words,
)
from reward_profiling.choosing.collection_rounds import Shards, collect_rounds
from reward_profiling.choosing.plan_extension import grow_plan
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
from reward_profiling.collecting.aggregation.aggregate_metrics import (
    aggregate as aggregate_output,
)
from reward_profiling.collecting.aggregation.aggregate_summary import AggregateSummary
from reward_profiling.collecting.collection_lock import collection_lock
from reward_profiling.collecting.open_shard import OpenShard, open_shard
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.collecting.spreading.shard_merge import merge_shards
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.reporting.summary_words import slowest_rollouts, zeros
from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.stop_scope import StopScope

NEXT = "write the plan with `materialize` first"
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
    start_timeout: Annotated[float, _START_TIMEOUT] = 600.0,
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
    files = RunFiles(output)
    if adaptive.adaptive and options.shard is not None:
        raise ConfigError(
            "--adaptive looks at all shards; collect them in one process, with"
            " --num-shards"
        )
    if not files.materialized_inputs.exists():  # before a lock makes the folder
        raise ConfigError(f"{files.materialized_inputs} does not exist; {NEXT}")
    collecting = _Collecting(files, head_url.rstrip("/"), start_timeout, options)
    with collection_lock(files, options):
        try:
            shards = asyncio.run(collecting.rounds(adaptive))
        except asyncio.CancelledError:
            code = collecting.scope.exit_code
            if code is None:
                raise
            complain(STOPPED)
            return code
    return _show(files, shards, collecting.scope.exit_code)


@dataclass(frozen=True, slots=True)
class _Collecting:
    """One call of the command."""

    files: RunFiles
    head_url: str
    start_timeout: float
    options: CollectOptions
    scope: StopScope = field(default_factory=StopScope)

    async def rounds(self, adaptive: Adaptive) -> Shards:
        """Collect, and go on with more repeats of open tasks where that is asked."""

        async def grow() -> AdaptiveSummary:
            reading = ProfileOptions(pass_threshold=adaptive.pass_threshold)
            grown = grow_plan(self.files, adaptive, reading)
            err.print(round_in_words(grown))
            return grown

        growing = grow if adaptive.adaptive else None
        with self.scope.hearing_signals():
            return await collect_rounds(self.collect, growing, self.scope)

    async def collect(self) -> Shards:
        """Collect what is owed."""
        files, options = self.files, self.options
        opened = [open_shard(files, i, n, options) for i, n in options.shards()]
        if any(shard.owed for shard in opened):
            shards = await self._collect(opened)
        else:
            err.print("nothing to do: every planned rollout is collected or given up")
            shards = [shard.not_collected() for shard in opened]
        if options.shard is None:
            merge_shards(files)
        return shards

    async def _collect(self, opened: Sequence[OpenShard]) -> Shards:
        options, scope = self.options, self.scope
        servers = await wait_until_ready(self.head_url, self.start_timeout, err.print)
        err.print(f"at most {options.concurrency} rollouts in flight", style="dim")
        live = Live()
        with live.showing():
            shards = await asyncio.gather(
                *(
                    collect_shard(shard, servers, options, scope, live.observe)
                    for shard in opened
                )
            )
        for progress in live.seen:
            if slowest := slowest_rollouts(progress):
                live.say(slowest)
        return list(shards)


def _show(files: RunFiles, shards: Shards, code: int | None) -> int:
    """Say what was collected; `code` is the exit code of a signal, if one came."""
    planned = sum(shard.planned for shard in shards)
    missing = sum(shard.missing for shard in shards)
    out.print(f"{planned - missing} of {planned} rollouts collected")
    path = shards[0].path if len(shards) == 1 else files.rollouts
    out.show(file_lines([path]))
    if code is not None:
        complain(STOPPED)
        return code
    for shard in shards:
        if shard.stopped:
            (complain if shard.is_failed else warn)(shard.stopped)
            break
    if any(shard.is_failed for shard in shards):
        return ExitCode.FAILED
    return ExitCode.PARTIAL if missing else ExitCode.WHOLE


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
    files = RunFiles(output)

    async def ask() -> AggregateSummary:
        servers = await wait_until_ready(head_url.rstrip("/"), 600.0, err.print)
        return await aggregate_output(files, servers, options)

    summary = asyncio.run(ask())
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
