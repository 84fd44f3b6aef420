"""YAML from files that people write."""

from pathlib import Path
from typing import Any

import yaml

from reward_profiling.errors import ConfigError


def parse_mapping(text: str, where: Path) -> dict[str, Any]:
    """Parse one YAML mapping whose names are text.

    Raises:
        ConfigError: it is not YAML, or something else than a mapping; names the file.
    """
    try:
        value = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{where} is not YAML: {said}") from error
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{where} is not a YAML mapping of names to values")
    return value
