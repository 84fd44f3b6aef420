"""How the files of a shard are named: its index and how many there are, in the stem."""

import re
from dataclasses import dataclass
from glob import escape

_DEALT = re.compile(r"-shard-(\d+)-of-(\d+)$")


@dataclass(frozen=True, slots=True)
class Dealt:
    """Which shard it is, of how many."""

    index: int
    """0-based."""
    count: int

    def __str__(self) -> str:
        """Name it as `--shard` does, as I/N."""
        return f"{self.index}/{self.count}"


def shard_stem(stem: str, dealt: Dealt) -> str:
    """Return the stem of a shard's files, from that of its output."""
    return f"{stem}-shard-{dealt.index}-of-{dealt.count}"


def shard_pattern(stem: str) -> str:
    """Return the pattern, as for `glob`, of the stems of an output's shards."""
    return f"{escape(stem)}-shard-*-of-*"


def dealt_of(stem: str) -> Dealt | None:
    """Return which shard a stem belongs to; None where it is no shard's."""
    found = _DEALT.search(stem)
    return found and Dealt(*map(int, found.groups()))


def whole_stem(stem: str) -> str:
    """Return the stem of the output that a stem belongs to, a shard's or its own."""
    return _DEALT.sub("", stem)
