"""Why servers did not start, according to their log, and what to do about it.

Gym installs each server into its own virtual environment on start, so most failed
starts are due to the network, the disk or the installer.
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
        f"the packages for {where} could not be downloaded. Build every server's"
        " environment once on a machine with a network: use the same options with"
        " --gym-overrides +dry_run=true (or `gym env start … +dry_run=true`). Then"
        " start with --gym-overrides ++skip_venv_if_present=true. UV_INDEX_URL can name"
        " your own package index"
    )


def _half_built(found: re.Match[str], where: str) -> str:
    return (
        f"{where} lacks the module {found[1]}: an installation was probably"
        " interrupted. Delete that folder and start again; with"
        " ++skip_venv_if_present=true Gym uses an existing folder unchanged"
    )


def _unsatisfiable(found: re.Match[str], where: str) -> str:
    said = " ".join(found[1].split())[:_SHOWN]
    return (
        f"this server's packages cannot be installed into {where}: {said}. That folder"
        " is incomplete; delete it before the next start"
    )


def _too_old(found: re.Match[str], where: str) -> str:
    return (
        f"the server needs Python {found[2]} and {where} has {found[1]}. Install Gym"
        f" into a virtual environment of Python {found[2]}, and delete that folder: it"
        " is incomplete"
    )


_CAUSES = (
    _Cause(
        re.compile(r"current node timed out during startup"),
        lambda *_: (
            "Ray, which Gym starts first, was not up within its limit of 30 s: this"
            " machine is too busy, or short of memory. Start again later"
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
            f"Python {found[1]} is not installed and could not be downloaded. Install"
            " it, or choose an installed one: --gym-overrides ++python_version=X.Y"
        ),
    ),
    _Cause(
        re.compile(r"Timeout \(\d+s\) when waiting for lock"),
        lambda *_: (
            "another start is building environments in the same cache. Wait for it, or"
            " use another cache: --gym-overrides ++uv_cache_dir=FOLDER"
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
            f"{where} holds an incompatible version of {found[1]}. Delete that folder"
            " and start again"
        ),
    ),
    _Cause(
        re.compile(r"(?m)^.*\bline \d+:\s+\d+ Killed|exited with code -9|MemoryError"),
        lambda *_: (
            "the system killed it, most likely for lack of memory: each server takes"
            " about 0.3 GB, and more if it loads a model. Start fewer servers"
        ),
    ),
)
"""From the most specific to the least: the first match is reported."""
