"""How long each finished rollout took: one line each, beside the records.

Gym's records do not have it. The timings are optional, so a damaged line is skipped.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from reward_profiling import wire
from reward_profiling.files.json_lines import read_lines


class Timing(msgspec.Struct, rename=wire.gym_name):
    """One finished rollout; what its line does not say is None."""

    task_index: int | str
    seconds: float
    """How long it took, its retries included."""
    rollout_index: int | str | None = None
    started: float | None = None
    """Moment at which it started, in seconds of the epoch."""
    replies_lost: int = 0
    """Its requests whose reply was lost: it possibly ran so many times more."""


_DECODE = msgspec.json.Decoder(Timing).decode


def timing_line(
    stamps: Mapping[str, Any],
    *,
    started: float,
    seconds: float,
    retries: int,
    replies_lost: int = 0,
) -> bytes:
    """Return the line of one finished rollout; `started` in seconds of the epoch."""
    lost = {"replies_lost": replies_lost} if replies_lost else {}
    return orjson.dumps({
        wire.TASK_INDEX: stamps[wire.TASK_INDEX],
        wire.ROLLOUT_INDEX: stamps[wire.ROLLOUT_INDEX],
        "started": round(started, 3),
        "seconds": round(seconds, 3),
        "retries": retries,
        **lost,
    })  # fmt: skip


def read_timings(path: Path) -> Iterator[Timing]:
    """Yield the timing of each finished rollout; none where there is no file."""
    for line in read_lines(path) if path.exists() else ():
        try:
            yield _DECODE(line.text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue


def seconds_by_task(path: Path) -> dict[object, float]:
    """Return the longest that each task took in earlier runs."""
    longest: dict[object, float] = {}
    for timing in read_timings(path):
        known = longest.get(timing.task_index, 0.0)
        longest[timing.task_index] = max(timing.seconds, known)
    return longest


def lost_replies(count: int) -> str:
    """Say how many replies were lost, and what that means."""
    replies = "1 reply was" if count == 1 else f"{count} replies were"
    return f"{replies} lost on the way (possibly run twice: {count})"
