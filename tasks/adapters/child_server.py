"""Servers that this process starts and owns.

Each child holds the read end of a pipe to this process and stops when the pipe
closes, so that it is gone however this process ends.
"""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson

from tasks.core.errors import ServersNotReadyError

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_SHOWN_LINES = 20


@asynccontextmanager
async def embedded_environment(arguments: Sequence[str] = ()) -> AsyncIterator[str]:
    """Run the embedded environment; yields its URL once it listens.

    Raises:
        ServersNotReadyError: it did not start; shows what it printed.
    """
    with tempfile.TemporaryFile() as errors:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tasks.demo", "--watch-stdin", *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=errors,
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
            await _let_go(child)


async def _announced_url(child: asyncio.subprocess.Process) -> str | None:
    if child.stdout is None:
        return None
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await child.stdout.readline()
        return str(orjson.loads(line)["url"])
    except (TimeoutError, orjson.JSONDecodeError, KeyError):
        return None


@asynccontextmanager
async def guarded_command(
    command: Sequence[str], log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command in a session of its own, its output in `log`; stop it at the end.

    Yields the guardian's process, which ends when the command ends.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tasks.adapters.guardian", str(log), *command,
        stdin=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        await _let_go(child)


async def _let_go(child: asyncio.subprocess.Process) -> None:
    """Close the child's standard input and wait until it is gone."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await child.wait()
    except (TimeoutError, asyncio.CancelledError):
        with suppress(ProcessLookupError):
            child.kill()
        raise


def free_port() -> int:
    """Return a loopback port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def last_lines(path: Path, count: int = _SHOWN_LINES) -> str:
    """Return the last lines of a log, for a message."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 16_384))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-count:])
