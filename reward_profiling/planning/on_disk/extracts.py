"""Single members of long lines: prompts of a plan, answers of records.

A line is read only as far as it must be; what cannot be read is passed over, for these
are aids, and the readers of plan and records tell what is wrong with a line.
"""

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
from reward_profiling.planning.task_labels import task_label

_KEY_NAMES = {"task_index": wire.TASK_INDEX, "rollout_index": wire.ROLLOUT_INDEX}
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ABSENT = msgspec.Raw()


class _Prompt(msgspec.Struct, rename={"task_index": wire.TASK_INDEX}.get):
    task_index: int | str
    responses_create_params: msgspec.Raw = _ABSENT


def read_labels(plan: Path) -> dict[Any, str]:
    """Return the beginning of each task's prompt, by task index.

    Raises:
        ConfigError: the file cannot be read.
    """
    decode = msgspec.json.Decoder(_Prompt).decode
    labels: dict[Any, str] = {}
    for line in read_lines(plan):
        try:
            row = decode(line.text)
            if row.task_index in labels or row.responses_create_params is _ABSENT:
                continue
            label = task_label(orjson.loads(bytes(row.responses_create_params)))
        except (*_FAULTS, orjson.JSONDecodeError):
            continue
        if label is not None:
            labels[row.task_index] = label
    return labels


def read_answers(rollouts: Path, field: str) -> Iterator[tuple[RolloutKey, int]]:
    """Yield each record's key and a digest of a field of it, where it has one.

    Equal values have equal digests, however their members are ordered.

    Raises:
        ConfigError: the file cannot be read, or the field is a part of the key.
    """
    if field in _KEY_NAMES.values():
        raise ConfigError(f"{field} says which rollout it is, and not what it answers")
    kind = msgspec.defstruct(
        "_Answer",
        [
            ("task_index", int | str),
            ("rollout_index", int | str),
            ("value", msgspec.Raw, _ABSENT),
        ],
        rename={**_KEY_NAMES, "value": field}.get,
    )
    decode = msgspec.json.Decoder(kind).decode
    for line in read_lines(rollouts):
        try:
            row: Any = decode(line.text)
            value = None if row.value is _ABSENT else orjson.loads(bytes(row.value))
            digest = None if value is None else _digest(value)
        except (*_FAULTS, orjson.JSONDecodeError, orjson.JSONEncodeError):
            continue
        if digest is not None:
            yield (row.task_index, row.rollout_index), digest


def _digest(value: object) -> int:
    text = value if isinstance(value, str) else None
    said = (
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if text is None
        else orjson.dumps(" ".join(text.split()))
    )
    digest = blake2b(said, digest_size=8).digest()
    return int.from_bytes(digest, signed=True) or 1
