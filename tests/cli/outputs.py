"""What commands left in a folder, by name."""

import hashlib
from pathlib import Path


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
    }


def profiles(folder: Path) -> dict[str, str]:
    """Return digests of all but the columns, which tell when files were written."""
    found = digests(folder).items()
    return {name: digest for name, digest in found if not name.endswith(".parquet")}
