"""A plan dealt round-robin into disjoint shards.

Neighbouring lines of a plan belong to one task and one environment, so that dealing
them like cards gives every shard some of each.
"""


def is_in_shard(position: int, index: int, count: int) -> bool:
    """Say whether the plan's line at `position` (0-based) is dealt to shard `index`.

    Every position is in exactly one of the `count` shards 0 … count - 1.
    """
    return position % count == index
