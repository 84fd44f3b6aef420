"""A block's lines are decoded at once only where that is as good as one by one."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.files.line_blocks import (
    Block,
    decoded_at_once,
    lines_in,
    lines_of,
    read_blocks,
)

OBJECTS = (b"{}", b'{"a":1}', b'{"a":[{},{}]}', b'{"a":"}\\n{"}')
PARTS = (*OBJECTS, b"{", b"}", b'{"a":', b"[")
BETWEEN = (b"\n", b"\n\n", b"\r\n", b" ", b"", b"\n ", b",", b"\0")
TEXTS = st.lists(st.sampled_from(PARTS + BETWEEN), max_size=12).map(b"".join)


class Nothing(msgspec.Struct):
    """An object that is passed over."""


DECODER = msgspec.json.Decoder(dict[str, object])


def block_of(text: bytes) -> Block:
    is_open = not text.endswith(b"\n")
    return Block(bytearray(text), 0, len(text), 0, is_open=is_open)


def one_by_one(text: bytes) -> list[dict[str, object]] | None:
    lines = text.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    try:
        return [DECODER.decode(line) for line in lines]
    except msgspec.DecodeError:
        return None


@given(TEXTS)
def test_each_bulk_line_is_one_object(text: bytes) -> None:
    block = block_of(text)

    found = decoded_at_once(block, lines_in(block), DECODER.decode_lines)

    assert found is None or found == one_by_one(text)


@pytest.mark.parametrize("is_open", [True, False])
@given(objects=st.lists(st.sampled_from(OBJECTS), min_size=1))
def test_single_objects_are_decoded_in_bulk(
    objects: list[bytes], *, is_open: bool
) -> None:
    text = b"\n".join(objects) + b"\n" * (not is_open)
    block = block_of(text)

    found = decoded_at_once(block, lines_in(block), DECODER.decode_lines)

    assert found == one_by_one(text)


def test_bulk_decoding_needs_utf_8() -> None:
    block = block_of(b'{"a":{"b":"\xff"}}\n')
    decode_lines = msgspec.json.Decoder(dict[str, Nothing]).decode_lines

    assert decode_lines(bytes(block.buffer))
    assert decoded_at_once(block, lines_in(block), decode_lines) is None


@pytest.mark.parametrize("size", [1, 7_000, 300_000])
def test_blocks_hold_whole_lines(size: int, tmp_path: Path) -> None:
    lines = [b"%d" % number * size for number in range(5)]
    path = tmp_path / "x"
    path.write_bytes(b"\n".join(lines))

    found = [
        (bytes(block.buffer[start:end]), block.place + start)
        for block in read_blocks(path)
        for start, end in lines_of(block)
    ]

    places = [sum(len(line) + 1 for line in lines[:at]) for at in range(5)]
    assert found == list(zip(lines, places, strict=True))
