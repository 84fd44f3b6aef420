"""Servers for one run: found where they run, or started and stopped with it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tasks.adapters.child_server import (
    embedded_environment,
    free_port,
    guarded_command,
    last_lines,
)
from tasks.adapters.gym_client import gym_client
from tasks.core.errors import GymError, GymRejectedError, ServersNotReadyError
from tasks.core.models import ServerOptions
from tasks.core.routing import Servers

_FIRST_POLL_SECONDS = 0.05
_POLL_SECONDS = 0.5
TELL_SECONDS = 3.0
_PROBE_SECONDS = 10.0
ABSENT_SECONDS = 15.0
"""How long nothing may listen where servers should be found running."""


@asynccontextmanager
async def serving(options: ServerOptions, log: Path) -> AsyncIterator[str]:
    """Yield the head server's URL; what is started here ends with the block.

    Servers that were found are never touched. `log` takes what started servers print.

    Raises:
        ServersNotReadyError: servers could not be started.
    """
    if options.head_url is not None:
        yield options.head_url.rstrip("/")
    elif options.demo:
        async with embedded_environment(_demo_arguments(options)) as url:
            yield url
    else:
        async with _gym_servers(options, log) as url:
            yield url


def _demo_arguments(options: ServerOptions) -> list[str]:
    if options.model_url is None:
        return []
    return [
        "--model-url", options.model_url, "--model", options.model or "",
        "--model-api-key-env", options.model_api_key_env,
    ]  # fmt: skip


@asynccontextmanager
async def _gym_servers(options: ServerOptions, log: Path) -> AsyncIterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [options.gym_command, "env", "start"]
    for path in options.gym_config:
        command += ["--config", path]
    if options.model_url is not None:
        command += ["--model-url", options.model_url]
    if options.model is not None:
        command += ["--model", options.model]
    command += [f"++head_server.port={port}", *options.gym_overrides]
    async with guarded_command(command, log) as guardian:
        ready = asyncio.create_task(_until_ready(url, options.start_timeout))
        ended = asyncio.create_task(guardian.wait())
        try:
            await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
            problem = await ready if ready.done() else _how_it_ended(command, guardian)
        finally:
            ready.cancel()
            ended.cancel()
        if problem is not None:
            raise ServersNotReadyError(
                f"{problem}; the end of {log}:\n{last_lines(log)}"
            )
        yield url


def _how_it_ended(command: list[str], guardian: asyncio.subprocess.Process) -> str:
    return f"`{' '.join(command[:3])}` ended with exit code {guardian.returncode}"


async def wait_until_ready(
    head_url: str,
    timeout_seconds: float,
    say: Callable[[str], None] = lambda _: None,
    *,
    absent_seconds: float = ABSENT_SECONDS,
    tell_seconds: float = TELL_SECONDS,
) -> Servers:
    """Wait until every server behind a head server is ready, and read which they are.

    Nothing may listen for `absent_seconds`: servers that are found are up by then. A
    wait longer than `tell_seconds` is said once.

    Raises:
        ServersNotReadyError: nothing listens there, or it was not ready in time.
    """
    problem = await _until_ready(
        head_url, timeout_seconds, say, absent_seconds, tell_seconds
    )
    if problem is not None:
        raise ServersNotReadyError(problem)
    async with gym_client(read_seconds=30.0) as client:
        try:
            return Servers(await client.configuration(head_url))
        except GymError as error:
            raise ServersNotReadyError(str(error)) from error


async def _until_ready(
    head_url: str,
    timeout_seconds: float,
    say: Callable[[str], None] = lambda _: None,
    absent_seconds: float | None = None,
    tell_seconds: float = TELL_SECONDS,
) -> str | None:
    """Wait for the head server; returns None, or why it is of no use to wait longer."""
    started = time.monotonic()
    told = False
    absent = timeout_seconds if absent_seconds is None else absent_seconds
    async with gym_client(read_seconds=_PROBE_SECONDS) as client:
        while True:
            waited = time.monotonic() - started
            try:
                if await client.is_ready(head_url):
                    return None
                limit, problem = timeout_seconds, "its servers are still starting"
            except GymRejectedError as error:
                return f"no head server of NeMo Gym is at {head_url}: {error}"
            except GymError as error:
                limit, problem = min(absent, timeout_seconds), str(error)
            if waited > limit:
                return (
                    f"the head server {head_url} was not ready within {limit:g} s:"
                    f" {problem}"
                )
            if not told and waited > tell_seconds:
                told = True
                say(f"waiting for {head_url}: {problem}")
            await asyncio.sleep(min(_POLL_SECONDS, _FIRST_POLL_SECONDS + waited / 4))
