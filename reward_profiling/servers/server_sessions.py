"""Servers for one run: found where they run, or started and stopped with it."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reward_profiling.errors import ServersNotReadyError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.demo_token import make_token
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.readiness import unseen
from reward_profiling.servers.server_states import ObserveServers
from reward_profiling.servers.starting.child_processes import (
    embedded_environment,
    free_port,
)
from reward_profiling.servers.starting.gym_command import (
    check_gym,
    head_port,
    learn_secrets,
)
from reward_profiling.servers.starting.gym_start import GymStart
from reward_profiling.stop_scope import StopScope
from reward_profiling.texts.redaction import learn, scrub

_MOST_STARTS = 3


def check_servers(options: ServerOptions) -> None:
    """Check what can be known of the servers before anything starts.

    Raises:
        ConfigError: they cannot be started so.
    """
    if options.is_gym_started:
        check_gym(options)


@asynccontextmanager
async def serving(
    options: ServerOptions,
    files: RunFiles,
    scope: StopScope,
    observe: ObserveServers = unseen,
) -> AsyncIterator[str]:
    """Yield the head server's URL; what is started here ends with the block.

    When one of Gym's servers ends before, the scope is asked to stop.

    Servers that were found are never touched. What started servers print goes to the
    logs beside the output.

    Raises:
        ServersNotReadyError: servers could not be started.
        ConfigError: they cannot be started so.
    """
    learn([os.environ.get(options.key_variable, "")])
    if options.head_url is not None:
        yield options.head_url.rstrip("/")
    elif options.demo:
        make_token()
        async with embedded_environment(_demo_arguments(options)) as url:
            yield url
    else:
        check_gym(options)
        learn_secrets(options)
        try:
            async with _gym_servers(options, files, scope, observe) as url:
                yield url
        finally:
            _scrub_logs(files)


def _demo_arguments(options: ServerOptions) -> list[str]:
    if options.model_url is None:
        return []
    return [
        "--model-url", options.model_url, "--model", options.model or "",
        "--model-api-key-env", options.key_variable,
    ]  # fmt: skip


@asynccontextmanager
async def _gym_servers(
    options: ServerOptions, files: RunFiles, scope: StopScope, observe: ObserveServers
) -> AsyncIterator[str]:
    """Start Gym; again where others took a port between its choice and its use."""
    deadline = time.monotonic() + options.start_timeout
    lost: set[int] = set()
    for starts_left in reversed(range(_MOST_STARTS)):
        port = head_port(options) or free_port()
        start = GymStart(options, files, port, max(0.0, deadline - time.monotonic()))
        try:
            async with start.servers(scope, observe):
                yield start.url
                return
        except ServersNotReadyError:
            # If the same port is taken twice, the configuration sets it: give up.
            is_hopeless = not start.may_pick_others or start.lost_ports & lost
            if is_hopeless or not starts_left:
                raise
            lost |= start.lost_ports
            observe([start.again()])


def _scrub_logs(files: RunFiles) -> None:
    """Take the secrets out of what servers printed, now that they are gone."""
    scrub(files.server_log)
    for log in sorted(files.server_logs.glob("*.log")):
        scrub(log)
