"""Durations as people write them: 90, "90s", "15m", "4h", "2d", "4:00:00"."""

import re

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]?\d)(?::([0-5]?\d))?")


def seconds_from(value: object) -> object:
    """Turn a duration as text into seconds; leave anything else as it is.

    "1:30" is minutes and seconds, "4:00:00" hours, "1-00:00:00" a day (as Slurm writes
    them).

    Raises:
        ValueError: the text is no duration.
    """
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if match := _WITH_UNIT.fullmatch(text):
        return float(match[1]) * _UNITS[match[2]]
    if match := _CLOCK.fullmatch(text):
        days, first, second, third = match.groups()
        if third is None and days is None:
            return int(first) * 60.0 + int(second)
        hours, minutes, rest = int(first), int(second), int(third or 0)
        return (int(days or 0) * 24 + hours) * 3600.0 + minutes * 60.0 + rest
    raise ValueError(f"{value!r} is not a duration; write 90s, 15m, 4h or 4:00:00")
