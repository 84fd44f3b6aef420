"""A comparison as JSON: one object, written whole or not at all."""

from pathlib import Path

import orjson

from reward_profiling.choosing.comparison import Comparison
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import open_to_read, replace_bytes

_BEGINNING = 256
"""Bytes of a comparison in which its first two members stand."""


def refuse_target(path: Path) -> None:
    """Refuse to write a comparison over anything but an earlier one.

    Raises:
        ConfigError: the file is another's, such as the records that are compared.
    """
    if not path.exists():
        return
    with open_to_read(path) as file:
        beginning = file.read(_BEGINNING)
    if b'"schema_version"' not in beginning or b'"baseline"' not in beginning:
        raise ConfigError(
            f"{path} exists and is not a comparison; give another --json file"
        )


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison as JSON, whole or not at all.

    Raises:
        OutputWriteError: the disk does not take it; what was there stays.
    """
    content = orjson.dumps(
        comparison,
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    replace_bytes(path, content)
