"""The lock of an output: it has one writer, or one for each of its shards.

The lock is the operating system's: it is gone with its owner, however it ends.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import orjson

from tasks.adapters.run_directory import RunFiles
from tasks.core.errors import OutputLockedError
from tasks.core.options import CollectOptions


@contextmanager
def output_lock(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock at `path`, alone or `shared` with other shards of one output.

    Raises:
        OutputLockedError: another process holds it; names that process.
    """
    with _locked(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX) as file:
        file.truncate(0)
        file.write(orjson.dumps(_this_process()))
        file.flush()
        try:
            yield
        finally:
            if not shared:
                path.unlink(missing_ok=True)


@contextmanager
def collection_lock(files: RunFiles, options: CollectOptions) -> Iterator[None]:
    """Hold what a collection writes: the whole output, or one shard's own files.

    Raises:
        OutputLockedError: another process holds it; names that process.
    """
    if options.shard is None:
        with output_lock(files.lock):
            yield
        return
    own = files.shard(*options.shard_of)
    with output_lock(files.lock, shared=True), output_lock(own.lock):
        yield


def _locked(path: Path, kind: int) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = path.open("a+b")
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = _owner(file.read())
            file.close()
            raise OutputLockedError(
                f"another run is writing this output: {owner}. Wait for it, stop it,"
                " or give another --output"
            ) from error
        # The last owner may have removed the file between our open and our lock.
        if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
        file.close()


def _this_process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _owner(content: bytes) -> str:
    try:
        owner = orjson.loads(content)
        return f"pid {owner['pid']} on {owner['host']}, since {owner['started']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "an unnamed process"
