"""Why servers did not start, as far as their log tells it, and what to do about it.

Gym installs each server into a virtual environment of its own when it starts it, so
that most starts that fail do so for reasons of a network, a disk or an installer.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_SHOWN = 200
_VENV = re.compile(r"Starting `([^`\n]+)` from venv (.+)")
_PREFIX = re.compile(r"(?m)^\([^()\n]{1,200}\) ")
"""What Gym puts before each line of an installation."""
_BOUND = re.compile(
    r"error while attempting to bind on address \('[^']*', (\d+)[^)]*\)[^\n]*in use"
)


class _Cause(NamedTuple):
    """One way to fail."""

    seen: re.Pattern[str]
    said: Callable[[re.Match[str], str], str]
    """Cause and remedy, from what matched and the server's virtual environment."""


def ports_in_use(log: str) -> set[int]:
    """Return the ports that servers could not have, since others listen there."""
    return {int(port) for port in _BOUND.findall(log)}


def venv_of(server: str, log: str) -> str | None:
    """Return the virtual environment that Gym's log says a server is started from."""
    found = [venv for name, venv in _VENV.findall(log) if name == server]
    return found[-1].strip() if found else None


def hint(log: str, venv: str | None = None) -> str | None:
    """Return cause and remedy in a sentence or two; None where the log tells neither.

    `log` is the end of what the server that failed has printed, `venv` the folder that
    it runs from.
    """
    where = venv or "its virtual environment"
    log = _PREFIX.sub("", log)
    for cause in _CAUSES:
        if found := cause.seen.search(log):
            return cause.said(found, where)
    return None


def _offline(_: re.Match[str], where: str) -> str:
    return (
        f"the packages for {where} could not be downloaded. Where there is a network,"
        " build every server's environment once: the same options with"
        " --gym-overrides +dry_run=true (or `gym env start … +dry_run=true`); then"
        " start with --gym-overrides ++skip_venv_if_present=true. UV_INDEX_URL names an"
        " index of your own"
    )


def _half_built(found: re.Match[str], where: str) -> str:
    return (
        f"{where} lacks the module {found[1]}: an installation into it was probably cut"
        " short. Delete that folder and start again; with ++skip_venv_if_present=true a"
        " folder that is there is taken as it is"
    )


def _unsatisfiable(found: re.Match[str], where: str) -> str:
    said = " ".join(found[1].split())[:_SHOWN]
    return (
        f"what this server needs cannot be installed into {where}: {said}. What lies"
        " there now is only half built; delete it before the next start"
    )


def _too_old(found: re.Match[str], where: str) -> str:
    return (
        f"the server needs Python {found[2]} and {where} has {found[1]}. Install Gym"
        f" into a virtual environment of Python {found[2]}, and delete what is in that"
        " folder: it is only half built"
    )


_CAUSES = (
    _Cause(
        re.compile(r"current node timed out during startup"),
        lambda *_: (
            "Ray, which Gym starts first, was not up within the 30 s that it has: this"
            " machine is too busy, or short of memory. Start again when it is calmer"
        ),
    ),
    _Cause(
        re.compile(
            r"current Python version \(([\d.]+)\) does not satisfy\s+Python([>=~!\d.]+)"
        ),
        _too_old,
    ),
    _Cause(
        re.compile(
            r"(?i)are you offline|failed to lookup address|temporary failure in name"
            r" resolution|dns error|could not connect to (?:proxy|server)|network is"
            r" unreachable|failed to fetch: |error sending request for url"
            r"|(?:network connectivity is|network was) disabled"
        ),
        _offline,
    ),
    _Cause(
        re.compile(r"No space left on device"),
        lambda _, where: (
            f"the disk is full; {where} and Gym's package cache take gigabytes. Make"
            " room, or put them elsewhere: --gym-overrides ++uv_venv_dir=FOLDER"
            " ++uv_cache_dir=FOLDER"
        ),
    ),
    _Cause(
        re.compile(r"uv: (?:command )?not found"),
        lambda *_: (
            "Gym builds the servers' environments with `uv`, which is not on PATH."
            " Install it where Gym is: `pip install uv`"
        ),
    ),
    _Cause(
        re.compile(r"No interpreter found for Python ([^\s]+)"),
        lambda found, _: (
            f"there is no Python {found[1]} here, and none could be downloaded. Install"
            " it, or choose one that is here: --gym-overrides ++python_version=X.Y"
        ),
    ),
    _Cause(
        re.compile(r"Timeout \(\d+s\) when waiting for lock"),
        lambda *_: (
            "another start is building environments in the same cache. Wait for it, or"
            " give this one its own: --gym-overrides ++uv_cache_dir=FOLDER"
        ),
    ),
    _Cause(
        re.compile(r"No solution found when resolving[^\n]*((?:\n[^\n]*){1,4})"),
        _unsatisfiable,
    ),
    _Cause(
        re.compile(r"(?:ModuleNotFoundError: )No module named '([^'\n]+)'"), _half_built
    ),
    _Cause(
        re.compile(r"ImportError: cannot import name '[^'\n]+' from '([^'\n]+)'"),
        lambda found, where: (
            f"{where} holds a version of {found[1]} that does not fit. Delete that"
            " folder and start again"
        ),
    ),
    _Cause(
        re.compile(r"(?m)^.*\bline \d+:\s+\d+ Killed|exited with code -9|MemoryError"),
        lambda *_: (
            "the system ended it, most likely for lack of memory: each server takes"
            " about 0.3 GB, and more where it loads a model"
        ),
    ),
)
"""The first that is seen is told: from the most particular to the least."""
