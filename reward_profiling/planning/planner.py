"""From task rows to planned rollouts.

Source: `gym-contract.md` §2, with the differences of `better-than-gym.md`. The plan
is kept compact: a task row stays in its file and is known by its place; its rollouts
are a range. Rows are checked whole before the first rollout is planned.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import DatasetError, RecordError
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.row_members import taskset_of
from reward_profiling.planning.task_rows import (
    DEFAULT,
    NO_ADDITIONS,
    Additions,
    PlannedTask,
    check_row,
    chosen_server,
    routing_names,
)

PlannedKey = tuple[int | str, tuple[str, bool]]
"""A task index, and what runs it (`PlannedTask.runner`)."""


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
        free = {key: deque(indices) for key, indices in planned.items()}
        following: Counter[int | str] = Counter()
        for (task_index, _), indices in planned.items():
            following[task_index] = max(
                following[task_index], *(i + 1 for i in indices)
            )
        rows_left = Counter((task.task_index, task.runner) for task in self.tasks)
        kept = Plan(warnings=self.warnings, num_rows=self.num_rows)
        for task in self.tasks:
            known = free.get((task.task_index, task.runner), deque())
            wanted = len(task.rollout_indices)
            rows_left[task.task_index, task.runner] -= 1
            if is_adaptive and not rows_left[task.task_index, task.runner]:
                wanted = max(wanted, len(known))
            indices = [known.popleft() for _ in range(min(wanted, len(known)))]
            fresh = following[task.task_index]
            following[task.task_index] += wanted - len(indices)
            indices += range(fresh, following[task.task_index])
            kept.tasks.append(replace(task, rollout_indices=indices))
        return kept

    def rollouts(self, *, interleave: bool) -> Iterator[tuple[PlannedTask, int]]:
        """Yield (task, rollout index) in dispatch order: aabbcc, or abcabc."""
        listed = (
            (task, index) for task in self.tasks for index in task.rollout_indices
        )
        if interleave:
            yield from sorted(listed, key=lambda rollout: rollout[1])
        else:
            yield from listed


@dataclass(frozen=True, slots=True)
class _Placed:
    """A task row's routing, and where it stands."""

    name: str
    line: int
    place: int
    agent: str | None
    task_source: str | None
    server: str | None = None
    """Environment server that it is stamped with; then its agent decides nothing."""
    taskset: str | None = None

    @property
    def key(self) -> str | None:
        """What fan-out and repeats look the row up by."""
        if self.server is not None:
            return self.taskset or self.task_source or self.server
        return self.task_source if self.agent is None else self.agent


class Planner:
    """Reads task rows one by one and ends in a plan, or in all their faults at once."""

    def __init__(
        self, options: PlanOptions, additions: Additions = NO_ADDITIONS
    ) -> None:
        self._options = options
        self._additions = additions
        self._routes = options.routes()
        self._plan = Plan()
        self._faults: list[str] = []
        self._index_by_text: dict[bytes, int] = {}
        self._line_of_assigned: dict[int, int] = {}
        self._line_of_given: dict[int | str, int] = {}
        self._next_rollout: Counter[int | str] = Counter()
        self._overrides: Counter[tuple[str, str]] = Counter()
        self._repeat_names: set[str] = set()
        self._without_agent: list[str] = []
        self._identical = 0

    @property
    def num_rows(self) -> int:
        """Task rows taken so far."""
        return self._plan.num_rows

    def reject(self, name: str, line: int, reason: str) -> None:
        """Note that a line cannot be used."""
        self._faults.append(f"{name}:{line}: {reason}")

    def add(
        self, row: Mapping[str, Any], text: bytes, name: str, line: int, place: int
    ) -> None:
        """Plan one task row.

        `text` is the raw line without its line ending: identical lines are one task.
        """
        self._plan.num_rows += 1
        try:
            task_index = self._task_index(row, text, line)
            server = chosen_server(row, self._options)
            check_row(row, self._options, self._additions)
            names = routing_names(row)
            placed = _Placed(name, line, place, *names, server, taskset_of(row))
        except RecordError as error:
            self.reject(name, line, str(error))
            return
        if placed.server is not None:
            self._plan_target(placed, None, task_index)
            return
        for agent in self._targets(placed):
            self._plan_target(placed, agent, task_index)

    def finish(self) -> Plan:
        """Return the plan.

        Raises:
            DatasetError: any row could not be used; all faults are in it.
        """
        self._faults += [
            f"{where}: names no agent; add agent_ref to the row, or pass"
            " --default-agent or --agent-name"
            for where in self._without_agent
        ]
        self._refuse_collisions()
        if self._faults:
            count = len(self._faults)
            raise DatasetError(f"{count} task rows cannot be used:", self._faults)
        if not self._plan.num_rows:
            raise DatasetError("the input holds no task rows")
        self._warn()
        return self._plan

    def _task_index(self, row: Mapping[str, Any], text: bytes, line: int) -> int | str:
        given = row.get(wire.TASK_INDEX)
        if wire.TASK_INDEX in row:
            if not isinstance(given, int | str) or isinstance(given, bool):
                raise RecordError(f"{wire.TASK_INDEX} is {given!r}, not a whole number")
            self._line_of_given.setdefault(given, line)
            return given
        digest = blake2b(text, digest_size=16).digest()
        known = self._index_by_text.get(digest)
        if known is not None:
            self._identical += 1
            return known
        index = len(self._index_by_text)
        self._index_by_text[digest] = index
        self._line_of_assigned[index] = line
        return index

    def _targets(self, placed: _Placed) -> list[str | None]:
        """Return the agents that run the row (§2.2 step 3b and 3c)."""
        key = placed.key
        mapped = self._mapped_agent(placed)
        if placed.agent and mapped and mapped != placed.agent:
            self._overrides[placed.agent, mapped] += 1
        if key is not None and key in self._options.fan_out:
            return list(self._options.fan_out[key])
        agent = placed.agent if mapped is None else mapped
        if not agent and not (agent is None and placed.task_source):
            self._without_agent.append(f"{placed.name}:{placed.line}")
            return []
        return [agent]

    def _mapped_agent(self, placed: _Placed) -> str | None:
        for name in (placed.agent, placed.task_source, DEFAULT):
            if name is not None and name in self._routes:
                return self._routes[name]
        if not placed.agent and not placed.task_source:
            return self._options.default_agent
        return None

    def _plan_target(
        self, placed: _Placed, agent: str | None, task_index: int | str
    ) -> None:
        repeats = self._repeats(agent, placed.key)
        if repeats is None:
            self.reject(
                placed.name,
                placed.line,
                f'num_repeats names neither {agent or placed.key!r} nor "_default"',
            )
            return
        first = self._next_rollout[task_index]
        self._next_rollout[task_index] += repeats
        self._plan.tasks.append(
            PlannedTask(
                placed.place,
                task_index,
                agent if placed.server is None else placed.agent,
                range(first, first + repeats),
                placed.server,
                is_materialized=placed.taskset is not None,
            )
        )

    def _repeats(self, agent: str | None, key: str | None) -> int | None:
        repeats = self._options.num_repeats
        if not isinstance(repeats, dict):
            return 1 if repeats is None else repeats
        for name in (agent, key, DEFAULT):
            if name is not None and name in repeats:
                self._repeat_names.add(name)
                return repeats[name]
        return None

    def _refuse_collisions(self) -> None:
        for index, line in self._line_of_given.items():
            other = (
                self._line_of_assigned.get(index) if isinstance(index, int) else None
            )
            if other is not None:
                self._faults.append(
                    f"line {line} gives {wire.TASK_INDEX} {index}, which line {other}"
                    " gets by its order; number all rows or none"
                )

    def _warn(self) -> None:
        warnings, options = self._plan.warnings, self._options
        if options.environment_server_name and (
            options.environment_routing_mode != "legacy"
        ):
            warnings.append(
                "environment_server_name has no effect without the"
                " environment_routing_mode legacy"
            )
        for (old, new), count in self._overrides.items():
            warnings.append(f"overrode the agent of {count} rows: {old} → {new}")
        if self._identical:
            warnings.append(
                f"{self._identical} rows repeat an earlier row to the letter and count"
                " as more repeats of the same task"
            )
        if isinstance(options.num_repeats, dict):
            unused = set(options.num_repeats) - self._repeat_names - {DEFAULT}
            if unused:
                names = ", ".join(sorted(unused))
                warnings.append(f"num_repeats names agents that no row has: {names}")
