"""What records answer: one field of each, read without the rest of the line."""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import read_lines
from reward_profiling.planning.row_members import RolloutKey

_ABSENT = msgspec.Raw()


def read_answers(rollouts: Path, field: str) -> Iterator[tuple[RolloutKey, int]]:
    """Yield each record's key and a digest of a field of it, where it has one.

    Equal values have equal digests, however their members are ordered, and whatever
    white space a text has. A digest is a whole number of 64 bits, never 0. A line that
    cannot be read is passed over: the readers of records tell what is wrong with it.

    Raises:
        ConfigError: the file cannot be read, or the field is a part of the key.
    """
    if field in {wire.TASK_INDEX, wire.ROLLOUT_INDEX}:
        raise ConfigError(
            f"{field} identifies the rollout and is not its answer; give another field"
        )
    decode = _decoder(field).decode
    for line in read_lines(rollouts):
        try:
            row = decode(line.text)
            value = None if row.value is _ABSENT else orjson.loads(bytes(row.value))
            digest = None if value is None else _digest(value)
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
            orjson.JSONDecodeError,
            orjson.JSONEncodeError,
        ):
            continue
        if digest is not None:
            yield (row.task_index, row.rollout_index), digest


def _decoder(field: str) -> msgspec.json.Decoder[Any]:
    """Return a reader of a record's key and one field, its `value`."""
    kind = msgspec.defstruct(
        "_Answer",
        [
            ("task_index", int | str),
            ("rollout_index", int | str),
            ("value", msgspec.Raw, _ABSENT),
        ],
        rename=lambda name: field if name == "value" else wire.gym_name(name),
    )
    return msgspec.json.Decoder(kind)


def _digest(value: object) -> int:
    text = value if isinstance(value, str) else None
    said = (
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if text is None
        else orjson.dumps(" ".join(text.split()))
    )
    digest = blake2b(said, digest_size=8).digest()
    return int.from_bytes(digest, signed=True) or 1
