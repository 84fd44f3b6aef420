"""The planned rollouts of a run, in columns: what profiling keeps of the plan."""

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

from reward_profiling.numerics.index_column import Index, joined_index
from reward_profiling.numerics.number_column import packed

Runner = tuple[str | None, str | None]
"""The agent's name, and the run key: server stamp, else that name (§4.3)."""


class PlanColumns(msgspec.Struct):
    """All planned rollouts, in the order of their lines; a column's entry is a row."""

    task: Any = msgspec.field(default_factory=lambda: array("q"))
    """Task index: an array of ints, or a list where one is text."""
    rollout: Any = msgspec.field(default_factory=lambda: array("q"))
    """Rollout index, likewise."""
    place: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    """Where the line starts in its file, in bytes; it leads back to the row."""
    runner: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    """Position in `runners`."""
    runners: list[Runner] = msgspec.field(default_factory=list)
    """Who runs rollouts; each pair once."""
    _numbers: dict[Runner, int] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of planned rollouts."""
        return len(self.place)

    def extend(
        self,
        tasks: Sequence[Index],
        rollouts: Sequence[Index],
        runners: Sequence[Runner],
        places: Sequence[int],
    ) -> None:
        """Append planned rollouts, one entry of each column per rollout.

        `places` are where their lines start in the file, in bytes.
        """
        self.task = joined_index(self.task, tasks)
        self.rollout = joined_index(self.rollout, rollouts)
        self.place.frombytes(packed("Q", places))
        distinct = dict.fromkeys(runners)
        for runner in distinct:
            if runner not in self._numbers:
                self._numbers[runner] = len(self.runners)
                self.runners.append(runner)
        if len(distinct) == 1:
            number = self._numbers[runners[0]]
            self.runner.extend(array("I", (number,)) * len(runners))
            return
        self.runner.extend(map(self._numbers.__getitem__, runners))

    def key(self, row: int) -> tuple[Index, Index]:
        """Return the rollout key of a row, counted from 0."""
        return self.task[row], self.rollout[row]
