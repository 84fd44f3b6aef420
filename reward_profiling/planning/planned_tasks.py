"""The plan in memory: which rollouts each task row asks for.

It is kept compact: a task row stays in its file and is known by its place; its rollouts
are a range.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reward_profiling.planning.row_members import TaskIndex

PlannedKey = tuple[TaskIndex, tuple[str, bool]]
"""A task index, and what runs it (`PlannedTask.runner`)."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """The rollouts that one task row asks for from one agent or environment server."""

    place: int
    """Where the task row starts in the input file, in bytes."""
    task_index: TaskIndex
    agent: str | None
    """None for a row that names a task source or a server, until that is resolved."""
    rollout_indices: Sequence[int]
    """Ascending; a range, unless an earlier plan had given some of them away."""
    server: str | None = None
    """Environment server that the row is stamped with; None where its agent decides."""
    is_materialized: bool = False
    """Whether the row is asked for as an episode, which needs no agent."""

    @property
    def runner(self) -> tuple[str, bool]:
        """What runs it: (name, whether that is an environment server)."""
        if self.server is not None:
            return self.server, True
        return self.agent or "", False

    @property
    def lacks_agent(self) -> bool:
        """Whether only the running servers can say which agent runs it."""
        return self.agent is None and not self.is_materialized


@dataclass(slots=True)
class Plan:
    """All planned rollouts, compactly, in input order."""

    tasks: list[PlannedTask] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    num_rows: int = 0

    @property
    def num_rollouts(self) -> int:
        """Planned rollouts in all."""
        return sum(len(task.rollout_indices) for task in self.tasks)

    @property
    def num_tasks(self) -> int:
        """Distinct task indices."""
        return len({task.task_index for task in self.tasks})

    def keeping(
        self, planned: Mapping[PlannedKey, Sequence[int]], *, is_adaptive: bool = False
    ) -> "Plan":
        """Return the plan with every rollout that was planned before at its index.

        `planned[task index, runner]` lists the rollout indices that an earlier plan
        gave out, ascending. New repeats come after all of them, so that a key never
        changes hands: not to another agent either, where a task is run by several.
        Of an adaptive plan, in which tasks were given more repeats than the options
        say, all of them are kept.
        """
        known = {key: deque(indices) for key, indices in planned.items()}
        following = _following(planned)
        rows_left = Counter((task.task_index, task.runner) for task in self.tasks)
        tasks = []
        for task in self.tasks:
            key = task.task_index, task.runner
            rows_left[key] -= 1
            earlier = known.get(key, deque())
            wanted = len(task.rollout_indices)
            if is_adaptive and not rows_left[key]:
                wanted = max(wanted, len(earlier))  # its last row takes what is left
            indices = [earlier.popleft() for _ in range(min(wanted, len(earlier)))]
            fresh = following[task.task_index]
            following[task.task_index] += wanted - len(indices)
            indices += range(fresh, following[task.task_index])
            tasks.append(replace(task, rollout_indices=indices))
        return replace(self, tasks=tasks)

    def rollouts(self, *, interleave: bool) -> Iterator[tuple[PlannedTask, int]]:
        """Yield (task, rollout index) in dispatch order: aabbcc, or abcabc.

        Interleaved, all rollouts are listed first.
        """
        listed = (
            (task, index) for task in self.tasks for index in task.rollout_indices
        )
        if interleave:
            yield from sorted(listed, key=lambda rollout: rollout[1])
        else:
            yield from listed


def _following(planned: Mapping[PlannedKey, Sequence[int]]) -> Counter[TaskIndex]:
    """Return the first rollout index that no earlier plan gave out, by task."""
    following: Counter[TaskIndex] = Counter()
    for (task_index, _), indices in planned.items():
        following[task_index] = max(following[task_index], *(i + 1 for i in indices))
    return following
