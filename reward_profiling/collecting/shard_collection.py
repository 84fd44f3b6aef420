"""Collect: owed rollouts become records."""

import os
import resource
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from reward_profiling.collecting.budgets import Streak
from reward_profiling.collecting.dispatcher import Dispatcher, owed_in_order
from reward_profiling.collecting.open_shard import OpenShard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import ObserveProgress, silent
from reward_profiling.collecting.shard_summary import ShardSummary
from reward_profiling.collecting.window.recorder import Journals, Recorder
from reward_profiling.collecting.window.server_gates import Gates
from reward_profiling.collecting.window.stop_rules import StopRules
from reward_profiling.collecting.window.tries import Asker
from reward_profiling.collecting.window.window import Window
from reward_profiling.planning.on_disk.planned_rollouts import read_planned
from reward_profiling.planning.on_disk.run_manifest import remember_model
from reward_profiling.planning.plan_changes import refuse_other_model
from reward_profiling.servers.gym_client import gym_client
from reward_profiling.servers.routes import Route, Servers
from reward_profiling.stop_scope import StopScope

CONNECT_SECONDS = 30.0
_FILES_KEPT = 48
"""Open files that are no sockets to servers: journals, Prefect's, the interpreter's."""
_ANY_PAIRING = "NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING"
"""Gym's own variable; set to anything, it lifts the check."""


async def collect_shard(
    shard: OpenShard,
    servers: Servers,
    options: CollectOptions,
    scope: StopScope,
    observe: ObserveProgress = silent,
) -> ShardSummary:
    """Collect what one shard owes, until the scope asks to stop.

    Raises:
        DatasetError: the plan names agents or environment servers that the servers do
            not have.
        OutputWriteError: the disk does not take a record.
    """
    routes = _routes(shard, servers, options)
    refuse_other_model(shard.files, servers.policy_model)
    remember_model(shard.files, servers.policy_model)
    progress = shard.start(time.monotonic())
    if shard.damaged:
        observe(
            progress,
            f"moved {shard.damaged} damaged lines to {shard.own.damaged.name}; their"
            " rollouts are collected again",
        )
    with Journals.opened(shard.own, shard.own.lock, shard.files.lock) as journals:
        streak = Streak(options.identical_failures, len(shard.tasks))
        recorder = Recorder(journals, progress, observe, streak)
        async with _window(shard, routes, options, recorder) as window:
            if shard.owed:
                await window.run(scope)
    return shard.summary(progress, window.stop)


def _routes(
    shard: OpenShard, servers: Servers, options: CollectOptions
) -> Mapping[str, Route]:
    """Return where the shard's rollouts are sent, by what runs them."""
    by_name = {server for server, _ in shard.stamped}
    routes = servers.routes(shard.agents.keys() - by_name, shard.stamped)
    if not options.allows_any_pairing(os.environ.get(_ANY_PAIRING, "")):
        servers.refuse_pairings(shard.pairs)
    return routes


@asynccontextmanager
async def _window(
    shard: OpenShard,
    routes: Mapping[str, Route],
    options: CollectOptions,
    recorder: Recorder,
) -> AsyncIterator[Window]:
    """Put the window over a shard's rollouts together, with connections of its own."""
    dispatcher = _dispatcher(shard, routes, options)
    concurrency = _room(shard.index, options, recorder)
    async with gym_client(connect_seconds=CONNECT_SECONDS) as client:
        gates = Gates(client, routes, recorder)
        asker = Asker(client, gates, options, recorder)
        rules = StopRules(
            options, recorder.progress, recorder.streak, gates, dispatcher.is_wanted
        )
        yield Window(dispatcher, routes, gates, asker, rules, recorder, concurrency)


def _dispatcher(
    shard: OpenShard, routes: Mapping[str, Route], options: CollectOptions
) -> Dispatcher:
    plan = shard.files.materialized_inputs
    owed = owed_in_order(
        plan,
        read_planned(plan, shard.index, shard.count),
        shard.ledger,
        options.dispatch,
        shard.files.timings,
    )
    return Dispatcher(
        plan,
        shard.ledger,
        owed,
        lambda runner: routes[runner].url,
        frozenset(route.url for route in routes.values()),
    )


def _room(index: int, options: CollectOptions, recorder: Recorder) -> int:
    """Return how many rollouts one shard of this run may have in flight.

    Each takes a socket, and sockets are files to the operating system.
    """
    shards = len(options.shards())
    wanted = options.concurrency_of(index)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if hard == resource.RLIM_INFINITY else max(soft, hard)
    room = max(1, (limit - _FILES_KEPT) // shards)
    if room < wanted:
        recorder.tell(
            f"at most {room} rollouts in flight, because this process may only open"
            f" {limit} files; raise `ulimit -n`"
        )
    return min(wanted, room)
