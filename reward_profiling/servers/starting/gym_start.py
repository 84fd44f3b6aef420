"""One start of Gym's servers: waited for, watched, and explained when it fails."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reward_profiling.errors import ServersNotReadyError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.readiness import HEAD, ReadyWait
from reward_profiling.servers.server_states import ObserveServers, ServerState
from reward_profiling.servers.starting.child_processes import (
    Family,
    guarded_command,
    last_lines,
    log_end,
    size_of,
    text_since,
)
from reward_profiling.servers.starting.gym_command import (
    PrivateFolder,
    ended_server,
    gym_arguments,
    gym_environment,
    gym_executable,
    head_port,
    is_start_of,
    port_holder,
    port_holder_pid,
    private_folder,
    server_log,
)
from reward_profiling.servers.starting.start_hints import hint, ports_in_use, venv_of
from reward_profiling.stop_scope import StopScope, helped_by
from reward_profiling.texts.redaction import redact

_LOOK_SECONDS = 1.0
_TELL_SECONDS = 1.5
"""How long to wait for Gym's own end after one of its servers has ended."""


class GymStart:
    """One start of Gym, and what became of it."""

    def __init__(
        self, options: ServerOptions, files: RunFiles, port: int, seconds: float
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.lost_ports: set[int] = set()
        """The ports that others had taken, if that is why it failed."""
        self._options = options
        self._files = files
        self._port = port
        self._seconds = seconds
        """How long it may take."""
        self._lengths = {
            log: size_of(log)
            for log in (files.server_log, *files.server_logs.glob("*.log"))
        }
        self._began = time.monotonic()

    @property
    def may_pick_others(self) -> bool:
        """Whether another start would take other ports than those that were taken."""
        return bool(self.lost_ports) and not (
            head_port(self._options) is not None and self._port in self.lost_ports
        )

    @asynccontextmanager
    async def servers(
        self, scope: StopScope, observe: ObserveServers
    ) -> AsyncIterator[None]:
        """Run Gym until the block ends; ask the scope to stop when Gym ends before.

        Raises:
            ServersNotReadyError: a server failed, or was not ready in time.
        """
        executable = gym_executable(self._options)
        with private_folder(self._files.server_logs) as private:
            async with guarded_command(
                gym_arguments(self._options, executable, self._port, private),
                self._files.server_log,
                environment=gym_environment(executable, private.path),
                removed=private.path,
            ) as guardian:
                family = Family(guardian.pid)
                waiting = ReadyWait(
                    self.url, self._seconds, observe,
                    has_ended=family.has_lost,
                    is_own=partial(self._is_own, private, family),
                )  # fmt: skip
                await self._until_ready(guardian, waiting)
                async with self._noticing(guardian, waiting, scope):
                    yield

    def _is_own(
        self, private: PrivateFolder, family: Family, config: Mapping[str, Any]
    ) -> bool:
        """Say whether the head server that answers is this start's."""
        if is_start_of(self._options, private, config):
            return True
        holder = port_holder_pid(self._port)
        return holder is not None and family.has(holder)

    def again(self) -> ServerState:
        """Return the head server's state when Gym is started once more."""
        taken = ", ".join(map(str, sorted(self.lost_ports)))
        said = f"restarting, because another process took port {taken}"
        return ServerState(HEAD, said, time.monotonic() - self._began)

    async def _until_ready(
        self, guardian: asyncio.subprocess.Process, waiting: ReadyWait
    ) -> None:
        ready = asyncio.create_task(waiting.until_ready())
        ended = asyncio.create_task(guardian.wait())
        try:
            await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
            code = ended.result() if ended.done() else None
            problem = None if code is not None else ready.result()
        finally:
            ready.cancel()
            ended.cancel()
        if code is not None or problem is not None:
            raise self._error(code, problem, waiting)

    def _error(
        self, code: int | None, problem: str | None, waiting: ReadyWait
    ) -> ServersNotReadyError:
        """Say what went wrong, what the log says, and what helps."""
        failed = waiting.failed or self._ended_servers(code)
        said = problem or ""
        if code is not None or failed:
            said = self._how_it_failed(failed, code)
        elif waiting.late:
            late = ", ".join(waiting.late)
            said = f"not healthy after {round(self._seconds, 1):g} s: {late}"
        self.lost_ports = self._taken(failed, waiting)
        if self._port in self.lost_ports:
            holder = port_holder(self._port) or "another process"
            said = f"port {self._port} of the head server was taken by {holder}; {said}"
        server = next(iter([*failed, *waiting.late]), None)
        log = self._log_of(server)
        end = redact(last_lines(log, since=self._length(log)))
        remedy = self._hint(server, log)
        advice = f"\nlikely cause: {remedy}" if remedy else ""
        return ServersNotReadyError(f"{said}; the end of {log}:\n{end}{advice}")

    def _how_it_failed(self, failed: list[str], code: int | None) -> str:
        name = Path(self._options.gym_command).name
        name = "gym" if self._options.gym_venv else name
        ended = f"`{name} env start` ended with exit code {code}"
        if not failed:
            return ended
        said = f"server {failed[0]} failed"
        if failed[1:]:
            said = f"servers {', '.join(failed)} failed"
        return f"{said} while starting" if code is None else f"{said}, and {ended}"

    def _ended_servers(self, code: int | None) -> list[str]:
        """Return the server that Gym says has ended, before it ended itself."""
        log = self._files.server_log
        said = "" if code is None else text_since(log, self._length(log))
        server = ended_server(said)
        return [] if server is None else [server]

    def _taken(self, failed: list[str], waiting: ReadyWait) -> set[int]:
        """Return the ports that others had taken before this start came to them."""
        log = self._files.server_log
        taken = ports_in_use(text_since(log, self._length(log))) & {self._port}
        for server in failed:
            log = self._log_of(server)
            taken |= ports_in_use(log_end(log, self._length(log)))
        return taken | ({self._port} if waiting.is_foreign else set())

    def _hint(self, server: str | None, log: Path) -> str | None:
        whole = self._files.server_log
        said = text_since(whole, self._length(whole))
        venv = venv_of(server, said) if server is not None else None
        return hint(log_end(log, self._length(log)), venv)

    def _length(self, log: Path) -> int:
        """Return how long a log was before this start."""
        return self._lengths.get(log, 0)

    def _log_of(self, server: str | None) -> Path:
        """Return a server's own log, or that of all while it has said nothing."""
        whole = self._files.server_log
        if server is None:
            return whole
        own = server_log(self._files.server_logs, server)
        return own if size_of(own) > self._length(own) else whole

    @asynccontextmanager
    async def _noticing(
        self, guardian: asyncio.subprocess.Process, waiting: ReadyWait, scope: StopScope
    ) -> AsyncIterator[None]:
        """End what runs when Gym, or one of its servers, ends before the block does."""
        with scope.may_ask_to_stop() as stop:
            async with helped_by(self._watch(guardian, waiting, stop)):
                yield

    async def _watch(
        self,
        guardian: asyncio.subprocess.Process,
        waiting: ReadyWait,
        stop: Callable[[str], None],
    ) -> None:
        """Notice an end; Gym itself looks once a minute, and then ends altogether."""
        lost: list[str] = []
        code: int | None = None
        while not lost and code is None:
            code = await _code_of(guardian, _LOOK_SECONDS)
            lost = waiting.lost() if code is None else []
        if lost:  # perhaps only because Gym ended, which is known a moment later
            code = await _code_of(guardian, _TELL_SECONDS)
        failed = lost if code is None else self._ended_servers(code)
        said = self._how_it_failed(failed, code).removesuffix(" while starting")
        log = self._log_of(next(iter(failed), None))
        stop(f"{said} during the run; see {log}. The missing rollouts are still owed")


async def _code_of(process: asyncio.subprocess.Process, seconds: float) -> int | None:
    """Return a process's exit code; None when it does not end in time."""
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None
