"""`profile` without what takes longer to import than a small profile takes to make.

Only the options that are often given are read here; with any other, or a value that
does not fit, the whole command line takes over, which knows them all and explains.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TextIO

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.plain_errors import STOPPED, code_of, words_of
from reward_profiling.cli.summary_lines import Styled, file_lines, summary_lines
from reward_profiling.errors import RewardProfilingError
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_given

_PATHS = ("--rollouts", "--inputs", "--output")
_FLAGS = {"--allow-partial": "allow_partial", "--rebuild": "rebuild"}
_CODES = {
    "bold": "1",
    "dim": "2",
    "yellow": "33",
    "bold yellow": "1;33",
    "bold green": "1;32",
    "bold red": "1;31",
}
_WIDTH = 80


class _OtherOptions(Exception):  # noqa: N818 - no error: others read them
    """There are options that are not read here."""


def quick_profile(arguments: Sequence[str]) -> int | None:
    """Profile and return the exit code; None where the whole command line has to."""
    try:
        given = _options(arguments)
    except _OtherOptions:
        return None
    try:
        sources = sources_given(
            given.rollouts, inputs=given.inputs, output=given.output
        )
        counts = profile_run(sources, given.request)
        lines = [*summary_lines(counts, _width()), *file_lines(counts)]
        _print(lines, sys.stdout)
    except (RewardProfilingError, OSError) as error:
        _print([Styled(f"error: {words_of(error)}")], sys.stderr)
        return code_of(error)
    except KeyboardInterrupt:
        _print([Styled(f"error: {STOPPED}")], sys.stderr)
        return ExitCode.INTERRUPTED
    return ExitCode.PARTIAL if counts.is_partial else ExitCode.WHOLE


class _Given:
    """The options of one command line."""

    def __init__(self) -> None:
        self.rollouts: list[Path] = []
        self.inputs: Path | None = None
        self.output: Path | None = None
        self.request = ProfileRequest()


def _options(arguments: Sequence[str]) -> _Given:
    """Read the options.

    Raises:
        _OtherOptions: there are some that are not read here.
    """
    given = _Given()
    flags: dict[str, bool] = {}
    threshold = given.request.pass_threshold
    left = iter(_split(arguments))
    for name in left:
        if name in _FLAGS and _FLAGS[name] not in flags:
            flags[_FLAGS[name]] = True
        elif name == "--pass-threshold":
            threshold = _number(next(left, ""))
        else:
            _take_path(given, name, next(left, ""))
    if not given.rollouts:
        raise _OtherOptions
    given.request = ProfileRequest(pass_threshold=threshold, **flags)
    return given


def _take_path(given: _Given, name: str, value: str) -> None:
    if name not in _PATHS or not value or value.startswith("-"):
        raise _OtherOptions
    if name == "--rollouts":
        given.rollouts.append(Path(value))
    elif getattr(given, name[2:]) is None:
        setattr(given, name[2:], Path(value))
    else:
        raise _OtherOptions


def _split(arguments: Iterable[str]) -> Iterator[str]:
    """Yield options and values apart: `--inputs=x` is `--inputs x`."""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals and name.startswith("--"):
            yield name
            yield value
        else:
            yield argument


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise _OtherOptions from error
    if not isfinite(value):
        raise _OtherOptions
    return value


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDTH
    except (AttributeError, OSError):  # standard output is closed, or no terminal
        return _WIDTH


def _print(lines: Iterable[Styled], stream: TextIO | None) -> None:
    if stream is None:  # it was closed before we came
        return
    is_coloured = stream.isatty() and "NO_COLOR" not in os.environ
    try:
        for text, style in lines:
            code = _CODES.get(style) if is_coloured else None
            stream.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")
        stream.flush()
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
