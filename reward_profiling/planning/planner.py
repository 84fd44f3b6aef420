"""Turns task rows into planned rollouts.

Source: `gym-contract.md` §2, with the differences of `better-than-gym.md`. All rows are
checked before the first rollout is planned.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import DatasetError, RecordError
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import Plan, PlannedTask
from reward_profiling.planning.routing import (
    DEFAULT,
    Routing,
    chosen_server,
    mapped_agent,
    routing_names,
)
from reward_profiling.planning.row_members import TaskIndex, given_index, taskset_of
from reward_profiling.planning.task_rows import NO_ADDITIONS, Additions, check_row


@dataclass(frozen=True, slots=True)
class _Placed:
    """A task row's routing, and where it stands."""

    where: str
    """File and line."""
    place: int
    routing: Routing


class Planner:
    """Reads task rows one by one; returns a plan, or reports all faults together."""

    def __init__(
        self, options: PlanOptions, additions: Additions = NO_ADDITIONS
    ) -> None:
        self._options = options
        self._additions = additions
        self._plan = Plan()
        self._faults: list[str] = []
        self._index_by_text: dict[bytes, int] = {}
        self._line_of_assigned: dict[int, int] = {}
        self._line_of_given: dict[TaskIndex, int] = {}
        self._next_rollout: Counter[TaskIndex] = Counter()
        self._overrides: Counter[tuple[str, str]] = Counter()
        self._repeat_names: set[str] = set()
        self._without_agent: list[str] = []
        self._identical = 0

    @property
    def num_rows(self) -> int:
        """Task rows taken so far."""
        return self._plan.num_rows

    def reject(self, name: str, line: int, reason: str) -> None:
        """Note that a line, counted from 1, cannot be used."""
        self._faults.append(f"{name}:{line}: {reason}")

    def add(
        self, row: Mapping[str, Any], text: bytes, name: str, line: int, place: int
    ) -> None:
        """Plan one task row, or note why it cannot be planned.

        `text` is the raw line without its line ending: identical lines are one task.
        `line` counts from 1; `place` is where the line starts in the file, in bytes.
        """
        self._plan.num_rows += 1
        try:
            task_index = self._task_index(row, text, line)
            routing = self._routing(row)
        except RecordError as error:
            self.reject(name, line, str(error))
            return
        placed = _Placed(f"{name}:{line}", place, routing)
        agents = [None] if routing.server is not None else self._agents(placed)
        for agent in agents:
            self._plan_rollouts(placed, agent, task_index)

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

    def _task_index(self, row: Mapping[str, Any], text: bytes, line: int) -> TaskIndex:
        given = given_index(row)
        if given is not None:
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

    def _routing(self, row: Mapping[str, Any]) -> Routing:
        server = chosen_server(row, self._options)
        check_row(row, self._options, self._additions)
        agent, source = routing_names(row)
        return Routing(agent, source, server, taskset_of(row))

    def _agents(self, placed: _Placed) -> list[str | None]:
        """Return the agents that run the row (§2.2 step 3b and 3c)."""
        routing = placed.routing
        mapped = mapped_agent(routing.agent, routing.task_source, self._options)
        if routing.agent and mapped and mapped != routing.agent:
            self._overrides[routing.agent, mapped] += 1
        if routing.key is not None and routing.key in self._options.fan_out:
            return list(self._options.fan_out[routing.key])
        agent = routing.agent if mapped is None else mapped
        if not agent and not (agent is None and routing.task_source):
            self._without_agent.append(placed.where)
            return []
        return [agent]

    def _plan_rollouts(
        self, placed: _Placed, agent: str | None, task_index: TaskIndex
    ) -> None:
        routing = placed.routing
        repeats = self._repeats(agent, routing.key)
        if repeats is None:
            name = agent or routing.key
            self._faults.append(
                f'{placed.where}: num_repeats names neither {name!r} nor "_default"'
            )
            return
        first = self._next_rollout[task_index]
        self._next_rollout[task_index] += repeats
        self._plan.tasks.append(
            PlannedTask(
                placed.place,
                task_index,
                agent if routing.server is None else routing.agent,
                range(first, first + repeats),
                routing.server,
                is_materialized=routing.taskset is not None,
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
                    f"line {line} has {wire.TASK_INDEX} {index}, but line {other} gets"
                    " the same index from its position; number all rows or none"
                )

    def _warn(self) -> None:
        warnings, options = self._plan.warnings, self._options
        if options.environment_server_name and (
            options.environment_routing_mode != "legacy"
        ):
            warnings.append(
                "environment_server_name only has an effect with"
                " environment_routing_mode legacy"
            )
        for (old, new), count in self._overrides.items():
            warnings.append(f"overrode the agent of {count} rows: {old} → {new}")
        if self._identical:
            warnings.append(
                f"{self._identical} rows are identical to an earlier row and count as"
                " more repeats of the same task"
            )
        if isinstance(options.num_repeats, dict):
            unused = set(options.num_repeats) - self._repeat_names - {DEFAULT}
            if unused:
                names = ", ".join(sorted(unused))
                warnings.append(f"num_repeats names agents that no row has: {names}")
