"""A set of rollout keys in little memory.

A task's repeats are the bits of one integer: a million keys of a plan with eight
repeats take about 20 MB instead of 200.
"""

from reward_profiling.planning.row_members import RolloutKey

_MAX_BIT = 4096


class KeySet:
    """Rollout keys; indices that are text, negative or huge are kept one by one."""

    def __init__(self) -> None:
        self._repeats: dict[int, int] = {}
        self._others: set[RolloutKey] = set()
        self._count = 0

    def add(self, key: RolloutKey) -> bool:
        """Add a key; say whether it was new."""
        if key in self:
            return False
        self._count += 1
        task, rollout = key
        if _is_small(task, rollout):
            self._repeats[task] = self._repeats.get(task, 0) | 1 << rollout
        else:
            self._others.add(key)
        return True

    def __contains__(self, key: RolloutKey) -> bool:
        """Say whether the key was added."""
        task, rollout = key
        if _is_small(task, rollout):
            return bool(self._repeats.get(task, 0) >> rollout & 1)
        return key in self._others

    def __len__(self) -> int:
        """Count the keys."""
        return self._count


def _is_small(task: object, rollout: object) -> bool:
    return (
        isinstance(task, int) and isinstance(rollout, int) and 0 <= rollout < _MAX_BIT
    )
