"""Servers that this process starts and owns.

Each child holds the read end of a pipe to this process and stops when the pipe closes,
so it never survives this process.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from reward_profiling.errors import ServersNotReadyError
from reward_profiling.servers.starting import guardian

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
GRACE_SECONDS = 6.0
"""How long Gym may take to end; it waits a second for each server, then kills it."""
_SHOWN_LINES = 20
_MOST_BYTES = 16_777_216
_END_BYTES = 16_384
_MOST_GENERATIONS = 32


@asynccontextmanager
async def embedded_environment(arguments: Sequence[str] = ()) -> AsyncIterator[str]:
    """Run the embedded environment; yields its URL once it listens.

    Raises:
        ServersNotReadyError: it did not start; shows what it printed.
    """
    with tempfile.TemporaryFile() as errors:
        # Its own session: a terminal's Ctrl-C must only reach the owner. -P: the
        # working directory may hold files named like a library.
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "reward_profiling.demo", "--watch-stdin",
            *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            url = await _announced_url(child)
            if url is None:
                errors.seek(0)
                said = errors.read().decode("utf-8", "replace").strip()
                raise ServersNotReadyError(
                    f"the embedded environment did not start: {said or 'no message'}"
                )
            yield url
        finally:
            await _let_go(child, _STOP_SECONDS)


async def _announced_url(child: asyncio.subprocess.Process) -> str | None:
    if child.stdout is None:
        return None
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await child.stdout.readline()
        return str(orjson.loads(line)["url"])
    except (TimeoutError, ValueError, KeyError, TypeError):
        return None


@asynccontextmanager
async def guarded_command(
    command: Sequence[str],
    log: Path,
    *,
    grace_seconds: float = GRACE_SECONDS,
    environment: Mapping[str, str] | None = None,
    removed: Path | None = None,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command in a session of its own, its output in `log`; stop it at the end.

    It is interrupted, and killed with all that it started after `grace_seconds`; then
    the folder `removed` is deleted. Yields the guardian's process, which ends when the
    command ends, with its exit code.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    remove = [] if removed is None else [guardian.REMOVE, str(removed)]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", guardian.__file__, *remove,
        str(grace_seconds), str(log), *command,
        stdin=asyncio.subprocess.PIPE, start_new_session=True, env=environment,
    )  # fmt: skip
    try:
        yield child
    finally:
        await _let_go(child, grace_seconds + _STOP_SECONDS)


async def _let_go(child: asyncio.subprocess.Process, seconds: float) -> None:
    """Close the child's standard input and wait until it is gone.

    No cancellation cuts the wait short: what was started would stay behind.
    """
    if child.stdin is not None:
        child.stdin.close()
    # A task of its own: cancelling this coroutine does not cancel the wait.
    gone = asyncio.create_task(_gone(child, seconds))
    cancelled: asyncio.CancelledError | None = None
    while not gone.done():
        try:
            await asyncio.shield(gone)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _gone(child: asyncio.subprocess.Process, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await child.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


def free_port() -> int:
    """Return a loopback port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Family:
    """The processes that a process has started, and those that they have."""

    def __init__(self, ancestor: int) -> None:
        self._ancestor = ancestor
        self._known: set[int] = set()

    def has_lost(self, pid: int) -> bool:
        """Say whether a process of the family has ended.

        False for one that was never seen in it, since its number may be that of another
        machine or container, and where there is no /proc.
        """
        stat = _stat(pid)
        if stat is None:
            return pid in self._known
        if pid not in self._known and not self.has(stat.parent):
            return False
        self._known.add(pid)
        return stat.state == "Z"  # ended, and its parent has not noticed yet

    def has(self, pid: int) -> bool:
        """Say whether a process is the ancestor or comes from it."""
        for _ in range(_MOST_GENERATIONS):
            if pid == self._ancestor:
                return True
            stat = _stat(pid)
            if stat is None:
                return False
            pid = stat.parent
        return False


class _Stat(NamedTuple):
    state: str
    parent: int


def _stat(pid: int) -> _Stat | None:
    with suppress(OSError):
        # The name in parentheses may hold spaces and parentheses: skip to the last.
        text = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
        state, parent, *_ = text.split()
        return _Stat(state.decode(), int(parent))
    return None


def size_of(path: Path) -> int:
    """Return how long a log is; 0 when it is not there."""
    return path.stat().st_size if path.exists() else 0


def last_lines(path: Path, count: int = _SHOWN_LINES, *, since: int = 0) -> str:
    """Return the last lines of a log that were added since it was `since` bytes."""
    return "\n".join(log_end(path, since).splitlines()[-count:])


def log_end(path: Path, since: int = 0) -> str:
    """Return the last 16 KB of a log that were added since it was `since` bytes."""
    return text_since(path, max(since, size_of(path) - _END_BYTES))


def text_since(path: Path, offset: int) -> str:
    """Return what was appended to a log since it was `offset` bytes long."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(offset)
        # The offset may be in the middle of a character.
        return file.read(_MOST_BYTES).decode("utf-8", "replace")


@contextmanager
def leftovers_stopped() -> Iterator[None]:
    """Have what this process started stopped even when it is killed.

    For children that others start in our name and that do not watch us themselves.
    """
    watcher = subprocess.Popen(  # noqa: S603 - a file of our own
        [sys.executable, "-I", guardian.__file__, guardian.WATCH, str(os.getpid())],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.communicate(guardian.ALL_DONE)
