"""Collect: owed rollouts become records, as a sliding window over the plan.

What is owed is computed from the files. Each finished rollout is on disk before it
counts; a rollout that came to nothing is a line in the failures file, never an error.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from tasks.adapters.gym_client import GymClient, gym_client
from tasks.adapters.journal import SYNC_SECONDS, Journal, read_journal
from tasks.adapters.jsonl import located, parse_object, read_lines
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.backoff import backoff_seconds
from tasks.core.errors import ConfigError, GymError, GymUnavailableError, RecordError
from tasks.core.ledger import Ledger
from tasks.core.models import CollectOptions, ShardSummary
from tasks.core.progress import Progress
from tasks.core.records import RolloutKey, agent_name, rollout_key
from tasks.core.replies import Fate, Outcome, outcome_of_error, outcome_of_reply
from tasks.core.routing import Route, Servers
from tasks.core.sharding import is_in_shard

Row = dict[str, Any]


class Observer(Protocol):
    """Hears of a collection's progress; it must return quickly and never raise."""

    def __call__(self, progress: Progress, note: str | None) -> None:
        """Take the present numbers, and a sentence for the log if there is one."""


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
    agents: set[str] = field(default_factory=set)

    def rows(self) -> Iterator[tuple[RolloutKey, Row]]:
        """Yield the shard's planned rows in plan order."""
        path = self.files.materialized_inputs
        for position, line in enumerate(read_lines(path)):
            if is_in_shard(position, self.index, self.count):
                with located(path, line.number):
                    row = parse_object(line.text)
                    yield rollout_key(row), row

    def owed_rows(self) -> Iterator[Row]:
        """Yield the rows still to collect, stamped with their attempt."""
        for key, row in self.rows():
            if self.ledger.is_owed(key):
                attempt = self.ledger.failures[key]
                if attempt:
                    row[wire.ATTEMPT_INDEX] = attempt
                yield row


def open_shard(
    files: RunFiles, index: int, count: int, options: CollectOptions
) -> OpenShard:
    """Read what is planned, collected and failed for one shard.

    Raises:
        ConfigError: there is no plan.
        RecordError: the plan has a row that names no agent.
    """
    if not files.materialized_inputs.exists():
        raise ConfigError(
            f"{files.materialized_inputs} does not exist; materialize the inputs first"
        )
    shard = OpenShard(files, files.shard(index, count), index, count, Ledger())
    shard.ledger.max_attempts = options.max_attempts
    for part in dict.fromkeys([files, *files.shards()]):
        shard.damaged += read_journal(
            part.rollouts, part.damaged, shard.ledger.add_record
        )
        shard.damaged += read_journal(
            part.failures, part.damaged, shard.ledger.add_failure
        )
    for key, row in shard.rows():
        shard.planned += 1
        shard.owed += shard.ledger.is_owed(key)
        done = key in shard.ledger.collected
        shard.given_up += not done and shard.ledger.is_given_up(key)
        shard.agents.add(_agent(row, key))
    return shard


def _agent(row: Mapping[str, Any], key: RolloutKey) -> str:
    agent = agent_name(row)
    if agent is None:
        raise RecordError(
            f"task {key[0]} repeat {key[1]} of the plan names no agent; materialize it"
            " again with the servers up (run), or with --default-agent"
        )
    return agent


async def collect_shard(
    shard: OpenShard,
    servers: Servers,
    options: CollectOptions,
    observe: Observer = silent,
) -> ShardSummary:
    """Collect what one shard owes. The caller holds the output's lock.

    Raises:
        DatasetError: the plan names agents that the servers do not have.
    """
    routes = servers.routes(shard.agents)
    started = time.monotonic()
    progress = Progress(
        planned=shard.planned,
        found=shard.planned - shard.owed - shard.given_up,
        given_up=shard.given_up,
        started=started,
    )
    if shard.damaged:
        observe(
            progress,
            f"set {shard.damaged} damaged lines aside in {shard.files.damaged.name};"
            " their rollouts are collected again",
        )
    with ExitStack() as stack:
        window = _Window(
            routes=routes,
            options=options,
            records=stack.enter_context(Journal(shard.own.rollouts)),
            failures=stack.enter_context(Journal(shard.own.failures)),
            progress=progress,
            observe=observe,
        )
        if shard.owed:
            await window.run(shard.owed_rows(), -(-options.concurrency // shard.count))
    if not shard.owed:
        observe(progress, None)
    return ShardSummary(
        path=str(shard.own.rollouts),
        shard_index=shard.index,
        num_shards=shard.count,
        planned=shard.planned,
        found=progress.found,
        collected=progress.collected,
        failed=progress.failed,
        given_up=shard.given_up,
        damaged=shard.damaged,
        seconds=time.monotonic() - started,
    )


@dataclass(slots=True)
class _Window:
    """A bounded number of rollouts in flight, each handled as it finishes."""

    routes: Mapping[str, Route]
    options: CollectOptions
    records: Journal
    failures: Journal
    progress: Progress
    observe: Observer
    draw: Callable[[], float] = random.random
    quiet_until: dict[str, float] = field(default_factory=dict)
    """Per server: when it may be asked again, by its own Retry-After."""

    async def run(self, rows: Iterator[Row], concurrency: int) -> None:
        syncing = asyncio.create_task(self._sync_for_ever())
        try:
            async with gym_client() as client, asyncio.TaskGroup() as workers:
                for _ in range(min(concurrency, self.progress.left)):
                    workers.create_task(self._work(client, rows))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            syncing.cancel()

    async def _work(self, client: GymClient, rows: Iterator[Row]) -> None:
        # One iterator for all workers: a worker that is free takes the next row.
        for row in rows:
            route = self.routes[agent_name(row) or ""]
            self.progress.in_flight += 1
            outcome = await self._finish(client, row, route)
            self.progress.in_flight -= 1
            self._write(outcome)

    async def _finish(self, client: GymClient, row: Row, route: Route) -> Outcome:
        """Run one rollout to its end, retries included, within its deadline."""
        body = orjson.dumps(row)
        seconds = self.options.rollout_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                reply = await self._ask(client, body, route)
            return outcome_of_reply(reply, row, route)
        except TimeoutError:
            late = GymUnavailableError(
                f"{route.url}{wire.RUN_PATH} gave no reply within {seconds:g} s",
                kind="RolloutTimeout",
            )
            return outcome_of_error(late, row, route)
        except GymError as error:
            return outcome_of_error(error, row, route)

    async def _ask(self, client: GymClient, body: bytes, route: Route) -> bytes:
        for retry in range(1, self.options.retries + 1):
            await self._until_asked_for(route)
            try:
                return await client.run_rollout(route.url, body)
            except GymUnavailableError as error:
                self.progress.retries += 1
                self._quiet(route, error)
                await asyncio.sleep(backoff_seconds(retry, self.draw()))
        await self._until_asked_for(route)
        return await client.run_rollout(route.url, body)

    def _quiet(self, route: Route, error: GymUnavailableError) -> None:
        if error.retry_after_seconds is not None:
            until = time.monotonic() + error.retry_after_seconds
            self.quiet_until[route.url] = max(
                until, self.quiet_until.get(route.url, 0.0)
            )

    async def _until_asked_for(self, route: Route) -> None:
        # The wait may grow while it lasts: another rollout heard a longer one.
        wait = self.quiet_until.get(route.url, 0.0) - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
            await self._until_asked_for(route)

    def _write(self, outcome: Outcome) -> None:
        now = time.monotonic()
        note = "; ".join(outcome.notes) or None
        if outcome.fate is Fate.COLLECTED:
            self.records.append(outcome.record)
            self.progress.add_record(
                outcome.record.get(wire.REWARD),
                masked=bool(outcome.record.get(wire.MASK_SAMPLE)),
                now=now,
            )
        else:
            failure_class = str(outcome.record.get(wire.FAILURE_CLASS, "not kept"))
            if outcome.fate is Fate.FAILED:
                self.failures.append(outcome.record)
            self.progress.add_failure(failure_class, now)
            note = note or _failure_note(outcome.record, failure_class)
        self.observe(self.progress, note)

    async def _sync_for_ever(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(SYNC_SECONDS)
                await self.records.sync()
                await self.failures.sync()


def _failure_note(record: Mapping[str, Any], failure_class: str) -> str:
    key = f"task {record[wire.TASK_INDEX]} repeat {record[wire.ROLLOUT_INDEX]}"
    message = record.get(wire.FAILURE_MESSAGE) or "the server gave no message"
    return f"{key} failed ({failure_class}): {message}"
