"""How long each finished rollout took: one line each, beside the records.

Gym's records do not say it. The lines are an aid, never the truth: one that is damaged
is passed over.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.files.json_lines import read_lines


class _Timing(msgspec.Struct, rename=wire.gym_name):
    task_index: int | str
    seconds: float


class _Span(msgspec.Struct):
    started: float
    seconds: float


_DECODE = msgspec.json.Decoder(_Timing).decode
_DECODE_SPAN = msgspec.json.Decoder(_Span).decode


def timing_line(
    stamps: Mapping[str, Any],
    *,
    started: float,
    seconds: float,
    retries: int,
) -> bytes:
    """Return the line of one finished rollout; `started` in seconds of the epoch."""
    return orjson.dumps({
        wire.TASK_INDEX: stamps[wire.TASK_INDEX],
        wire.ROLLOUT_INDEX: stamps[wire.ROLLOUT_INDEX],
        "started": round(started, 3),
        "seconds": round(seconds, 3),
        "retries": retries,
    })  # fmt: skip


def seconds_by_task(path: Path) -> dict[object, float]:
    """Return the longest that each task took in earlier runs."""
    longest: dict[object, float] = {}
    if path.exists():
        for line in read_lines(path):
            try:
                timing = _DECODE(line.text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            known = longest.get(timing.task_index, 0.0)
            longest[timing.task_index] = max(timing.seconds, known)
    return longest


def read_timings(path: Path) -> Iterator[tuple[float, float]]:
    """Yield (moment of the start, seconds taken) of each finished rollout.

    The moment is in seconds of the epoch. Nothing where there is no file.

    Raises:
        ConfigError: the file cannot be read.
    """
    for line in read_lines(path) if path.exists() else ():
        try:
            timing = _DECODE_SPAN(line.text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        yield timing.started, timing.seconds
