"""Servers for one run: found where they run, or started and stopped with it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tasks.adapters.child_server import (
    embedded_environment,
    free_port,
    guarded_command,
    last_lines,
    text_since,
)
from tasks.adapters.gym_command import (
    check_gym,
    ended_server,
    gym_arguments,
    gym_environment,
    gym_executable,
    head_port,
    learn_secrets,
    private_folder,
    server_log,
)
from tasks.adapters.redaction import redact, scrub
from tasks.adapters.run_directory import RunFiles
from tasks.core.errors import ServersNotReadyError
from tasks.core.options import ServerOptions
from tasks.core.starting import ObserveServers
from tasks.operations.readiness import Waiting, unseen
from tasks.operations.stopping import may_ask_to_stop


def check_servers(options: ServerOptions) -> None:
    """Check what can be known of the servers before anything starts.

    Raises:
        ConfigError: they cannot be started so.
    """
    if options.is_gym_started:
        check_gym(options)


@asynccontextmanager
async def serving(
    options: ServerOptions, files: RunFiles, observe: ObserveServers = unseen
) -> AsyncIterator[str]:
    """Yield the head server's URL; what is started here ends with the block.

    Servers that were found are never touched. What started servers print goes to the
    logs beside the output.

    Raises:
        ServersNotReadyError: servers could not be started.
        ConfigError: they cannot be started so.
    """
    if options.head_url is not None:
        yield options.head_url.rstrip("/")
    elif options.demo:
        async with embedded_environment(_demo_arguments(options)) as url:
            yield url
    else:
        check_gym(options)
        learn_secrets(options)
        try:
            async with _gym_servers(options, files, observe) as url:
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
    options: ServerOptions, files: RunFiles, observe: ObserveServers
) -> AsyncIterator[str]:
    executable = gym_executable(options)
    port = head_port(options) or free_port()
    url = f"http://127.0.0.1:{port}"
    start = _Start(options, files, url)
    with private_folder(files.server_logs) as private:
        command = gym_arguments(options, executable, port, private)
        async with guarded_command(
            command, files.server_log,
            environment=gym_environment(executable, private.path),
            removed=private.path,
        ) as guardian:  # fmt: skip
            await start.until_ready(guardian, observe)
            async with start.noticing(guardian):
                yield url


class _Start:
    """One start of Gym, and what became of it."""

    def __init__(self, options: ServerOptions, files: RunFiles, url: str) -> None:
        self._options = options
        self._files = files
        self._url = url
        log = files.server_log
        self._offset = log.stat().st_size if log.exists() else 0

    async def until_ready(
        self, guardian: asyncio.subprocess.Process, observe: ObserveServers
    ) -> None:
        """Wait until the servers are ready.

        Raises:
            ServersNotReadyError: the command ended, or they were not in time.
        """
        waiting = Waiting(self._url, self._options.start_timeout, observe)
        ready = asyncio.create_task(waiting.until_ready())
        ended = asyncio.create_task(guardian.wait())
        try:
            await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                said, log = self._how_it_ended(ended.result())
                problem: str | None = said
            else:
                problem, log = self._how_late(ready.result(), waiting)
        finally:
            ready.cancel()
            ended.cancel()
        if problem is not None:
            end = redact(last_lines(log))
            raise ServersNotReadyError(f"{problem}; the end of {log}:\n{end}")

    def _how_it_ended(self, code: int) -> tuple[str, Path]:
        """Say how Gym's command ended, and which log tells why."""
        name = "gym" if self._options.gym_venv else Path(self._options.gym_command).name
        said = f"`{name} env start` ended with exit code {code}"
        server = ended_server(text_since(self._files.server_log, self._offset))
        if server is None:
            return said, self._files.server_log
        return f"server {server} failed, and {said}", self._log_of(server)

    def _how_late(
        self, problem: str | None, waiting: Waiting
    ) -> tuple[str | None, Path]:
        if problem is None or not waiting.late:
            return problem, self._files.server_log
        late = ", ".join(waiting.late)
        said = f"not healthy after {self._options.start_timeout:g} s: {late}"
        return said, self._log_of(waiting.late[0])

    def _log_of(self, server: str) -> Path:
        """Return a server's own log, or that of all while it has said nothing."""
        own = server_log(self._files.server_logs, server)
        has_said = own.exists() and own.stat().st_size > 0
        return own if has_said else self._files.server_log

    @asynccontextmanager
    async def noticing(
        self, guardian: asyncio.subprocess.Process
    ) -> AsyncIterator[None]:
        """End what runs when Gym ends before the block does."""
        with may_ask_to_stop() as stop:
            watching = asyncio.create_task(self._stop_when_ended(guardian, stop))
            try:
                yield
            finally:
                watching.cancel()

    async def _stop_when_ended(
        self, guardian: asyncio.subprocess.Process, stop: Callable[[str], None]
    ) -> None:
        problem, log = self._how_it_ended(await guardian.wait())
        stop(f"{problem} during the run; see {log}. What is left is still owed")


def _scrub_logs(files: RunFiles) -> None:
    """Take the secrets out of what servers printed, now that they are gone."""
    scrub(files.server_log)
    for log in sorted(files.server_logs.glob("*.log")):
        scrub(log)
