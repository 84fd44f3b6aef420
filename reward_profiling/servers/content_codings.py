"""Content codings of a reply, undone within a bound: a small body may hold a huge one.

Source: RFC 9110 §8.4 (codings are listed in the order they were applied in), RFC 1952
(gzip, which may have several members), RFC 1950 and 1951 (deflate, with its wrapper or,
as some servers send it, without).
"""

import zlib
from collections.abc import Iterable

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_WINDOWS = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _RAW)}
_MOST = 3
_MOST_MEMBERS = 1_000
_PIECE_BYTES = 1 << 16
_PADDING = b"\0"


class CodingError(ValueError):
    """A body that is not what its codings say, or codings that are not known here."""


class TooLongError(ValueError):
    """A body that holds more than the bound."""


def decoded(body: bytes, headers: Iterable[str], bound: int) -> bytes:
    """Return a body without its codings.

    Args:
        body: As it came.
        headers: The values of its `Content-Encoding`, in order.
        bound: Bytes that it may hold at most, after each coding.

    Raises:
        CodingError: a coding is unknown, or the body is damaged or cut.
        TooLongError: it holds more.
    """
    named = (name.strip().lower() for name in ",".join(headers).split(","))
    codings = [name for name in named if name not in {"", "identity"}]
    unknown = [name for name in codings if name not in _WINDOWS]
    if unknown or len(codings) > _MOST:
        known = ", ".join(_WINDOWS)
        raise CodingError(
            f"its Content-Encoding is {', '.join(codings)!r}; known are {known},"
            f" {_MOST} at most"
        )
    for coding in reversed(codings):
        if body:
            body = _inflated(body, _WINDOWS[coding], bound)
    return body


def _inflated(body: bytes, windows: tuple[int, ...], bound: int) -> bytes:
    *others, last = windows
    for window in others:
        try:
            return _members(body, window, bound)
        except CodingError:
            continue
    return _members(body, last, bound)


def _members(body: bytes, window: int, bound: int) -> bytes:
    """Undo one coding; a gzip body may have several members, and zeros after them."""
    parts: list[bytes] = []
    place, left = 0, bound
    for _ in range(_MOST_MEMBERS if window == _GZIP else 1):
        inflater = zlib.decompressobj(window)
        while not inflater.eof and place < len(body):
            # By pieces: what follows a member is copied each time.
            piece = body[place : place + _PIECE_BYTES]
            try:
                # One byte more than allowed is enough to see that it is too long.
                parts.append(inflater.decompress(piece, left + 1))
            except zlib.error as error:
                raise CodingError(str(error)) from error
            place += len(piece) - len(inflater.unused_data)
            left -= len(parts[-1])
            if left < 0:
                raise TooLongError(f"the reply holds over {bound} bytes")
        if not inflater.eof:
            raise CodingError("its compressed body ends too soon")
        is_padded = body[place : place + 1] == _PADDING
        if place == len(body) or (is_padded and not body[place:].strip(_PADDING)):
            return b"".join(parts)
    raise CodingError("something follows its compressed body")
