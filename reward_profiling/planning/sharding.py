"""A plan dealt round-robin into disjoint shards.

Neighbouring lines of a plan belong to one task and one environment, so that dealing
them like cards gives every shard some of each.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def dealt(items: Iterable[T], index: int, count: int) -> Iterator[T]:
    """Yield those of `items` that are dealt to shard `index`, in order.

    Every item is in exactly one of the `count` shards 0 … count - 1.
    """
    return islice(items, index, None, count)
