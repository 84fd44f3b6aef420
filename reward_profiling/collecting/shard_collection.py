"""Collect: owed rollouts become records.

What is owed is computed from the files, never from a memory of earlier runs.
"""

import os
import resource
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from reward_profiling import wire
from reward_profiling.collecting.dispatcher import (
    Dispatcher,
    owed_in_order,
    shard_rollouts,
)
from reward_profiling.collecting.ledger import Ledger
from reward_profiling.collecting.ledgers import read_parts
from reward_profiling.collecting.on_disk.journal import Journal
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import AgentProgress, Progress
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.window import Journals, Observer, Stop, Window
from reward_profiling.errors import ConfigError, DuplicateRolloutError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.key_set import KeySet
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.planning.on_disk.run_manifest import remember_model
from reward_profiling.planning.plan_changes import refuse_other_model
from reward_profiling.servers.gym_client import gym_client
from reward_profiling.servers.routes import Servers

CONNECT_SECONDS = 30.0
_FILES_KEPT = 48
"""Open files that are no sockets to servers: journals, Prefect's, the interpreter's."""
_ANY_PAIRING = "NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING"
"""Gym's own variable; set to anything, it lifts the check."""


def silent(progress: Progress, note: str | None) -> None:
    """Observe nothing."""


async def read_servers(head_url: str) -> Servers:
    """Ask the head server which servers there are.

    Raises:
        ServersNotReadyError: it has no usable configuration.
        GymUnavailableError: it does not answer.
    """
    async with gym_client(read_seconds=30.0) as client:
        return Servers(await client.configuration(head_url))


@dataclass(slots=True)
class OpenShard:
    """One shard's part of a plan, and what is known of it."""

    files: RunFiles
    own: RunFiles
    index: int
    count: int
    ledger: Ledger
    damaged: int = 0
    planned: int = 0
    owed: int = 0
    given_up: int = 0
    agents: dict[str, AgentProgress] = field(default_factory=dict)
    pairs: set[tuple[str, str | None]] = field(default_factory=set)
    """(agent, task source) of its rows: who runs them, and whose verifier scores."""
    stamped: set[tuple[str, str | None]] = field(default_factory=set)
    """(environment server, agent) of the rows that are sent to a server by its name."""

    def start(self, now: float) -> Progress:
        """Return the progress of a collection that starts now."""
        return Progress(
            planned=self.planned,
            name=f"shard {self.index} of {self.count}" if self.count > 1 else "",
            found=self.planned - self.owed - self.given_up,
            given_up=self.given_up,
            started=now,
            agents=self.agents,
        )


def open_shard(
    files: RunFiles,
    index: int,
    count: int,
    options: CollectOptions,
    *,
    mends: bool = True,
) -> OpenShard:
    """Read what is planned, collected and failed for one shard.

    The caller holds the lock of the shard's own files, or of the whole output; without
    it, nothing may be mended.

    Raises:
        ConfigError: there is no plan.
        RecordError: the plan has a row that cannot be read, or names no agent.
        DuplicateRolloutError: two rows plan one rollout.
    """
    if not files.materialized_inputs.exists():
        raise ConfigError(
            f"{files.materialized_inputs} does not exist; materialize the inputs first"
        )
    ledger = Ledger(options.max_attempts, options.retry_given_up)
    own = files.shard(index, count)
    shard = OpenShard(files, own, index, count, ledger)
    shard.damaged = read_parts(files, ledger, own if mends else None)
    keys = KeySet()
    for planned in shard_rollouts(files.materialized_inputs, index, count):
        if not keys.add(planned.key):
            raise DuplicateRolloutError(
                f"{files.materialized_inputs} plans {planned.name} twice"
            )
        _count(shard, planned)
    return shard


def _count(shard: OpenShard, planned: PlannedRollout) -> None:
    key = planned.key
    known = shard.agents.setdefault(planned.runner, AgentProgress())
    if planned.agent is not None:
        shard.pairs.add((planned.agent, planned.stamps.get(wire.TASK_SOURCE)))
    if planned.server is not None:
        shard.stamped.add((planned.server, planned.agent))
    known.planned += 1
    shard.planned += 1
    if shard.ledger.is_owed(key):
        shard.owed += 1
        return
    known.done += 1
    shard.given_up += key not in shard.ledger.collected


async def collect_shard(
    shard: OpenShard,
    servers: Servers,
    options: CollectOptions,
    observe: Observer = silent,
) -> ShardSummary:
    """Collect what one shard owes.

    Raises:
        DatasetError: the plan names agents or environment servers that the servers do
            not have.
        OutputWriteError: the disk does not take a record.
    """
    by_name = {server for server, _ in shard.stamped}
    routes = servers.routes(shard.agents.keys() - by_name, shard.stamped)
    if not (options.allow_unsupported_pairing or os.environ.get(_ANY_PAIRING)):
        servers.refuse_pairings(shard.pairs)
    refuse_other_model(shard.files, servers.policy_model)
    remember_model(shard.files, servers.policy_model)
    progress = shard.start(time.monotonic())
    if shard.damaged:
        observe(
            progress,
            f"set {shard.damaged} damaged lines aside in {shard.own.damaged.name};"
            " their rollouts are collected again",
        )
    plan = shard.files.materialized_inputs
    owed = owed_in_order(
        plan,
        shard_rollouts(plan, shard.index, shard.count),
        shard.ledger,
        options.dispatch,
        shard.files.timings,
    )
    with ExitStack() as stack:
        journals = Journals(
            *(
                stack.enter_context(Journal(path))
                for path in (shard.own.rollouts, shard.own.failures, shard.own.timings)
            )
        )
        async with gym_client(connect_seconds=CONNECT_SECONDS) as client:
            window = Window(
                client=client,
                routes=routes,
                dispatcher=Dispatcher(
                    plan,
                    shard.ledger,
                    owed,
                    lambda runner: routes[runner].url,
                    frozenset(route.url for route in routes.values()),
                ),
                options=options,
                concurrency=_room(shard.index, options, progress, observe),
                journals=journals,
                progress=progress,
                observe=observe,
            )
            if shard.owed:
                await window.run()
    return _summary(shard, progress, window.stop)


def _room(
    index: int, options: CollectOptions, progress: Progress, observe: Observer
) -> int:
    """Return how many rollouts one shard of this run may have in flight.

    Each takes a socket, and sockets are files to the operating system.
    """
    shards = len(options.shards())
    wanted = options.concurrency_of(index)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if hard == resource.RLIM_INFINITY else max(soft, hard)
    room = max(1, (limit - _FILES_KEPT) // shards)
    if room < wanted:
        observe(
            progress, f"at most {room} in flight: {limit} files may be open at once"
        )
    return min(wanted, room)


def not_collected(shard: OpenShard, stop: Stop | None = None) -> ShardSummary:
    """Return the summary of a shard from which nothing is collected."""
    return _summary(shard, shard.start(time.monotonic()), stop)


def _summary(shard: OpenShard, progress: Progress, stop: Stop | None) -> ShardSummary:
    return ShardSummary(
        path=str(shard.own.rollouts),
        shard_index=shard.index,
        num_shards=shard.count,
        planned=shard.planned,
        found=progress.found,
        collected=progress.collected,
        failed=progress.failed,
        given_up=shard.given_up,
        owed=progress.left,
        damaged=shard.damaged,
        retries=progress.retries,
        replies_lost=progress.replies_lost,
        seconds=time.monotonic() - progress.started,
        stopped=stop.reason if stop else None,
        is_failed=bool(stop and stop.is_failure),
    )
