"""Codings of replies, as servers and proxies send them."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.servers.content_codings import (
    CodingError,
    TooLongError,
    decoded,
)

BOUND = 100_000
BODY = b'{"reward": 1.0}' * 10


def raw(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


def zipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    ("sent", "headers"),
    [
        (BODY, []),
        (BODY, ["identity"]),
        (zipped(BODY), ["gzip"]),
        (zipped(BODY), ["GZIP"]),
        (zipped(BODY), ["x-gzip"]),
        (zipped(BODY), ["identity, gzip"]),
        (zipped(zipped(BODY)), ["gzip, gzip"]),
        (zipped(zipped(BODY)), ["gzip", "gzip"]),
        (zipped(zlib.compress(BODY)), ["deflate, gzip"]),
        (zlib.compress(BODY), ["deflate"]),
        (raw(BODY), ["deflate"]),
        (zipped(BODY[:20]) + zipped(BODY[20:]), ["gzip"]),
        (zipped(BODY) + bytes(50), ["gzip"]),
        (b"", ["gzip"]),
    ],
)
def test_what_servers_send_is_read(sent: bytes, headers: list[str]) -> None:
    assert decoded(sent, headers, BOUND) == (BODY if sent else b"")


@pytest.mark.parametrize(
    ("sent", "headers"),
    [
        (BODY, ["br"]),
        (BODY, ["gzip, zstd"]),
        (BODY, ["gzip"]),
        (BODY, ["deflate"]),
        (zipped(BODY), ["gzip, gzip"]),
        (zipped(BODY)[:-8], ["gzip"]),
        (zipped(BODY)[:-1], ["gzip"]),
        (zipped(BODY) + b"more", ["gzip"]),
        (zlib.compress(BODY) + b"more", ["deflate"]),
        (zlib.compress(BODY)[:-4], ["deflate"]),
        (BODY, ["gzip"] * 4),
    ],
)
def test_what_is_damaged_or_unknown_is_refused(sent: bytes, headers: list[str]) -> None:
    with pytest.raises(CodingError):
        decoded(sent, headers, BOUND)


@pytest.mark.parametrize("headers", [["gzip"], ["gzip, gzip"], ["identity, gzip"]])
def test_a_bomb_stops_at_the_bound(headers: list[str]) -> None:
    bomb = zipped(bytes(50 * BOUND))
    if headers == ["gzip, gzip"]:
        bomb = zipped(bomb)

    with pytest.raises(TooLongError):
        decoded(bomb, headers, BOUND)


def test_a_bomb_of_many_members_stops_too() -> None:
    with pytest.raises(TooLongError):
        decoded(zipped(bytes(BOUND // 2)) * 3, ["gzip"], BOUND)


@given(
    st.binary(max_size=2000), st.lists(st.sampled_from(["gzip", "deflate"]), max_size=3)
)
def test_codings_are_undone_in_reverse(body: bytes, codings: list[str]) -> None:
    sent = body
    for coding in codings:
        sent = zipped(sent) if coding == "gzip" else zlib.compress(sent)

    assert decoded(sent, [", ".join(codings)], BOUND) == body
