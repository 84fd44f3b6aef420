"""Lines of JSON: reads them with their place, writes them completely or not at all.

A line is an object. Reading accepts blank lines, a byte order mark, CRLF and a missing
final newline; written lines end in one newline.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from reward_profiling.errors import ConfigError, OutputWriteError, RecordError
from reward_profiling.numerics.number_column import INT64, UINT64_MAX

_BOM = b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 20
SEEK_BYTES = 8192
"""A buffer for who reads a line here and a line there."""
_SHOWN_CHARACTERS = 60
_ZEROS_FOR_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_DIGITS = b"0" * 19
_MOST_DIGITS = 21
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


class Line(NamedTuple):
    """One line that is not blank."""

    number: int
    """1-based, blank lines included, as an editor counts."""
    place: int
    """Byte offset of the line's first byte in the file."""
    text: bytes
    """The line without its ending and without a byte order mark."""


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file that are not blank.

    Raises:
        ConfigError: the file cannot be read.
    """
    place = 0
    with open_to_read(path) as file:
        for number, raw in enumerate(file, start=1):
            start = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
            text = raw[start:].rstrip(b"\r\n")
            if text and not text.isspace():
                yield Line(number, place + start, text)
            place += len(raw)


@contextmanager
def open_to_read(path: Path, *, buffering: int = _BUFFER_BYTES) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    try:
        file = path.open("rb", buffering=buffering)
    except FileNotFoundError as error:
        folder = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise ConfigError(f"{path} does not exist{folder}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        yield file


@contextmanager
def open_unbuffered(path: Path) -> Iterator[int]:
    """Open a file for reading and give its descriptor.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    with open_to_read(path) as file:
        yield file.fileno()


def parse_object(text: bytes) -> dict[str, Any]:
    """Parse one line as a JSON object.

    Raises:
        RecordError: it is not strict JSON, or not an object.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"is not JSON: {_shown(text)} ({error.msg})") from error
    if not isinstance(value, dict):
        raise RecordError(f"is not a JSON object: {_shown(text)}")
    return value


def parse_record(text: bytes) -> dict[str, Any]:
    """Parse one collected record, as far as any writer of JSON goes.

    A record keeps the bytes that came. `NaN` and `Infinity`, `1e400` and a thousand
    digits become floats that are not finite; half a surrogate pair becomes U+FFFD.

    Raises:
        RecordError: it is not JSON, or not an object.
    """
    try:
        return parse_object(text)
    except RecordError:
        try:
            # orjson is strict; Python's parser also reads NaN and huge numbers.
            value = json.loads(text, parse_int=_whole)
            if _HALF_PAIR.search(text):
                value = _paired(value)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise
        return value


def _paired(value: object) -> object:
    """Replace what is half a surrogate pair, in texts and in names."""
    if isinstance(value, str):
        encoded = value.encode("utf-16-le", "surrogatepass")
        return encoded.decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_paired(entry) for entry in value]
    if isinstance(value, dict):
        return {_paired(name): _paired(entry) for name, entry in value.items()}
    return value


def _whole(digits: str) -> int | float:
    if len(digits) <= _MOST_DIGITS and INT64[0] <= int(digits) <= UINT64_MAX:
        return int(digits)
    return float(digits)


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    is_long = len(shown) > _SHOWN_CHARACTERS
    return shown[:_SHOWN_CHARACTERS] + "…" if is_long else shown


def refuse_wide_integers(text: bytes) -> None:
    """Refuse whole numbers beyond 64 bits, which would silently become floats.

    Raises:
        RecordError: names the number.
    """
    if _LONG_DIGITS not in text.translate(_ZEROS_FOR_DIGITS):
        return  # nearly every line; a regular expression would take ten times as long

    def check(digits: str) -> int:
        # Python refuses to parse thousands of digits, and 64 bits have at most twenty.
        number = int(digits) if len(digits) <= _MOST_DIGITS else None
        if number is None or not INT64[0] <= number <= UINT64_MAX:
            raise RecordError(
                f"holds the whole number {_shown(digits.encode())}, which does not fit"
                " in 64 bits and would be changed; write it as text"
            )
        return number

    try:
        json.loads(text, parse_int=check)
    except RecursionError as error:
        raise RecordError("is nested too deep") from error


def has_duplicate_keys(text: bytes, value: object) -> bool:
    """Say whether some object in the line names a key twice (the last one wins).

    Re-encoding drops the first of two equal keys, and with it a colon.
    """
    try:
        again = orjson.dumps(value)
    except TypeError:
        return False  # nested deeper than can be written; the row is told elsewhere
    return text.count(b":") != again.count(b":") and _names_key_twice(text)


def _names_key_twice(text: bytes) -> bool:
    found = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=check)
    return found


class located:  # noqa: N801 - used as a verb; a class takes a third of the time
    """Put `file:line` in front of a record error raised inside."""

    __slots__ = ("_number", "_path")

    def __init__(self, path: Path, number: int) -> None:
        self._path = path
        self._number = number

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise a record error again, with its place."""
        if isinstance(error, RecordError):
            message = f"{self._path}:{self._number}: {error}"
            raise type(error)(message) from error


def read_row(file: IO[bytes], place: int) -> dict[str, Any]:
    """Read back the object whose line starts at `place`.

    Raises:
        RecordError: it is none; names file and line.
    """
    file.seek(place)
    try:
        return parse_object(file.readline().rstrip(b"\r\n"))
    except RecordError as error:
        path = Path(file.name)
        raise RecordError(f"{path}:{line_at(path, place)}: {error}") from error


def line_at(path: Path, place: int) -> int:
    """Return the 1-based number of the line that starts at a place."""
    with open_to_read(path) as file:
        return sum(1 for line in _until(file, place))


def _until(file: IO[bytes], place: int) -> Iterator[bytes]:
    for line in file:
        yield line
        place -= len(line)
        if place < 0:
            return


def replace_file(path: Path, write: Callable[[IO[bytes]], None]) -> os.stat_result:
    """Write a complete file: into a temporary beside it, synced, then renamed.

    A reader sees the old file or the new one, whatever happens in between.

    Returns:
        The status of the file that was written, even if another one has replaced it.

    Raises:
        OutputWriteError: the disk does not take it; what was there stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w+b", buffering=_BUFFER_BYTES) as file:
            write(file)
            file.flush()
            # Before the rename: else a power loss may leave an empty file there.
            os.fsync(file.fileno())
            temporary.replace(path)
            written = os.fstat(file.fileno())
    except OSError as error:
        raise OutputWriteError(
            f"{path} cannot be written: {error.strerror or error}; the old file is kept"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return written


def replace_bytes(path: Path, content: bytes) -> os.stat_result:
    """Write `content` whole or not at all."""

    def write(file: IO[bytes]) -> None:
        file.write(content)

    return replace_file(path, write)


def replace_rows(path: Path, rows: Iterable[Any]) -> os.stat_result:
    """Write compact JSON lines, whole or not at all."""

    def write(file: IO[bytes]) -> None:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    return replace_file(path, write)


def _sync_folder(folder: Path) -> None:  # makes a rename durable
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
