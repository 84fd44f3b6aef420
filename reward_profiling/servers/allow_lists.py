"""What a machine lets its runs start and write: lists in its own environment.

Whoever reaches Prefect's form gives the parameters of a run, but not the environment of
the worker that runs it. Without the variables everything is allowed.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from reward_profiling.errors import ConfigError

COMMANDS = "REWARD_PROFILING_ALLOWED_COMMANDS"
VENVS = "REWARD_PROFILING_ALLOWED_VENVS"
OUTPUTS = "REWARD_PROFILING_ALLOWED_OUTPUTS"


def check_command(path: str, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse to start a command that is on no list; a venv's may be on either.

    Raises:
        ConfigError: names the command, and what is allowed.
    """
    if COMMANDS not in environ and VENVS not in environ:
        return
    command = Path(path)
    venv = command.parent.parent
    is_listed = _same(command, _listed(COMMANDS, environ))
    if not is_listed and not _same(venv, _listed(VENVS, environ)):
        raise ConfigError(
            f"{path} may not be started on this machine: {_told(COMMANDS, environ)},"
            f" {_told(VENVS, environ)}"
        )


def check_output(output: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse an output that is in none of the listed folders.

    Raises:
        ConfigError: names the output, and what is allowed.
    """
    if OUTPUTS not in environ:
        return
    place = output.expanduser().resolve()
    if not any(place.is_relative_to(one) for one in _listed(OUTPUTS, environ)):
        raise ConfigError(
            f"{place} may not be written on this machine: {_told(OUTPUTS, environ)}"
        )


def _listed(variable: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the places of a list, whose parts stand between colons, as of PATH."""
    parts = environ.get(variable, "").split(os.pathsep)
    return [Path(part).expanduser().resolve() for part in parts if part]


def _same(path: Path, listed: list[Path]) -> bool:
    return path.resolve() in listed


def _told(variable: str, environ: Mapping[str, str]) -> str:
    places = ", ".join(map(str, _listed(variable, environ)))
    return f"{variable} lists {places or 'nothing'}"
