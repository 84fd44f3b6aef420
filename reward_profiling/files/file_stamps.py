"""A stamp of a file's content, computed in milliseconds for any size.

The stamp of a file up to 8 MB covers all its bytes. For a larger one it covers its
size, its time of change and samples of its bytes: rollouts files have gigabytes, and
reading them to avoid reading them would save nothing. A change that keeps all three
goes unnoticed, and a copy counts as another file.
"""

import hashlib
import os
from pathlib import Path
from typing import IO

_WHOLE_BYTES = 8_000_000
_SAMPLE_BYTES = 65_536
_SAMPLES = 32


def file_stamp(path: Path) -> str | None:
    """Return what tells a file's content from another; None where there is no file."""
    try:
        with path.open("rb") as file:
            return _stamp(file)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _stamp(file: IO[bytes]) -> str:
    status = os.fstat(file.fileno())
    digest = hashlib.blake2b(digest_size=16)
    if status.st_size <= _WHOLE_BYTES:
        digest.update(file.read())
        return f"{status.st_size}-{digest.hexdigest()}"
    last = status.st_size - _SAMPLE_BYTES
    for number in range(_SAMPLES):
        file.seek(last * number // (_SAMPLES - 1))
        digest.update(file.read(_SAMPLE_BYTES))
    return f"{status.st_size}-{status.st_mtime_ns}-{digest.hexdigest()}"
