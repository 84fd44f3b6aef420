"""In which order the members of records stand."""

from collections.abc import Iterable

import msgspec


class Layout(msgspec.Struct, frozen=True):
    """In which order a record's members stand; a record has some of them."""

    own: tuple[str, ...]
    """Members of the record itself that may be numbers."""
    usage: tuple[str, ...]
    """Members of `response.usage`."""

    def merged(self, other: "Layout") -> "Layout | None":
        """Return a layout that holds for both; None where their orders disagree."""
        own = merged_order(self.own, other.own)
        usage = merged_order(self.usage, other.usage)
        return None if own is None or usage is None else Layout(own, usage)


def merged_order(
    first: tuple[str, ...], second: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return an order of all names that agrees with both orders; None if none does."""
    if first == second:
        return first
    ours, theirs = set(first), set(second)
    common = [name for name in first if name in theirs]
    if common != [name for name in second if name in ours]:
        return None
    found: list[str] = []
    left, right = iter(first), iter(second)
    for shared in [*common, None]:
        found += _until(left, shared)
        found += _until(right, shared)
        if shared is not None:
            found.append(shared)
    return tuple(found)


def _until(names: Iterable[str], stop: str | None) -> list[str]:
    taken = []
    for name in names:
        if name == stop:
            break
        taken.append(name)
    return taken
