"""From task rows to planned rollouts.

Source: `gym-contract.md` §2, with the differences of `better-than-gym.md`. The plan
is kept compact: a task row stays in its file and is known by its place; its rollouts
are a range. Rows are checked whole before the first rollout is planned.
"""

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from tasks.core import wire
from tasks.core.errors import DatasetError, RecordError
from tasks.core.models import PlanOptions
from tasks.core.records import agent_name

_DEFAULT = "_default"


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """The rollouts that one task row asks for from one agent."""

    place: int
    """Where the task row starts in the input file, in bytes."""
    task_index: int | str
    agent: str | None
    """None only for a row that names a task source, until that is resolved."""
    rollout_indices: Sequence[int]
    """Ascending; a range, unless an earlier plan had given some of them away."""


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

    def keeping(self, planned: Mapping[tuple[int | str, str], Sequence[int]]) -> "Plan":
        """Return the plan with every rollout that was planned before at its index.

        `planned[task index, agent]` lists the rollout indices that an earlier plan gave
        out, ascending. New repeats come after all of them, so that a key never changes
        hands: not to another agent either, where a task is run by several.
        """
        free = {key: deque(indices) for key, indices in planned.items()}
        following: Counter[int | str] = Counter()
        for (task_index, _), indices in planned.items():
            following[task_index] = max(
                following[task_index], *(i + 1 for i in indices)
            )
        kept = Plan(warnings=self.warnings, num_rows=self.num_rows)
        for task in self.tasks:
            known = free.get((task.task_index, task.agent or ""), deque())
            wanted = len(task.rollout_indices)
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

    @property
    def key(self) -> str | None:
        """What fan-out and repeats look the row up by."""
        return self.task_source if self.agent is None else self.agent


class Planner:
    """Reads task rows one by one and ends in a plan, or in all their faults at once."""

    def __init__(self, options: PlanOptions) -> None:
        self._options = options
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
            check_row(row, self._options)
            agent, source = _routing_names(row)
            placed = _Placed(name, line, place, agent, source)
        except RecordError as error:
            self.reject(name, line, str(error))
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
        for name in (placed.agent, placed.task_source, _DEFAULT):
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
            PlannedTask(placed.place, task_index, agent, range(first, first + repeats))
        )

    def _repeats(self, agent: str | None, key: str | None) -> int | None:
        repeats = self._options.num_repeats
        if not isinstance(repeats, dict):
            return 1 if repeats is None else repeats
        for name in (agent, key, _DEFAULT):
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
        warnings = self._plan.warnings
        for (old, new), count in self._overrides.items():
            warnings.append(f"overrode the agent of {count} rows: {old} → {new}")
        if self._identical:
            warnings.append(
                f"{self._identical} rows repeat an earlier row to the letter and count"
                " as more repeats of the same task"
            )
        if isinstance(self._options.num_repeats, dict):
            unused = set(self._options.num_repeats) - self._repeat_names - {_DEFAULT}
            if unused:
                names = ", ".join(sorted(unused))
                warnings.append(f"num_repeats names agents that no row has: {names}")


def _routing_names(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the agent and the task source that the row names; "" names none."""
    agent, source = agent_name(row), row.get(wire.TASK_SOURCE)
    if source is not None and not isinstance(source, str):
        raise RecordError(f"{wire.TASK_SOURCE} is not text")
    return agent, source


def check_row(row: Mapping[str, Any], options: PlanOptions) -> None:
    """Refuse a task row that cannot be planned.

    Raises:
        RecordError: what is missing, and the remedy.
    """
    if isinstance(row.get(wire.TASK_ID), Mapping) and wire.TASK_INPUT in row:
        raise RecordError(
            "is a materialized task row (task_id and task_input); such rows are not"
            " supported yet"
        )
    if wire.PARAMS not in row:
        raise RecordError(
            f"has no {wire.PARAMS}; each row needs one with its input, such as"
            f' {{"{wire.PARAMS}": {{"input": "…"}}}}'
        )
    params = row[wire.PARAMS]
    if not isinstance(params, Mapping):
        raise RecordError(f"{wire.PARAMS} is not an object")
    if options.num_repeats_add_seed:
        seeded_metadata({**params, **options.responses_create_params}, 0)


def seeded_metadata(params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return `params.metadata` with `seed` set inside its `extra_body` text.

    Raises:
        RecordError: `metadata` is no object, or `extra_body` no JSON object as text.
    """
    metadata = params.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise RecordError(f"{wire.PARAMS}.metadata is not an object")
    text = metadata.get("extra_body", "{}")
    try:
        extra = json.loads(text)
    except (TypeError, ValueError) as error:
        raise RecordError("metadata.extra_body is not JSON as text") from error
    if not isinstance(extra, dict):
        raise RecordError("metadata.extra_body is not a JSON object")
    # Python's own spacing, as Gym writes it.
    return {**metadata, "extra_body": json.dumps({**extra, "seed": seed})}


def materialized_row(
    row: Mapping[str, Any],
    task: PlannedTask,
    rollout_index: int,
    options: PlanOptions,
) -> dict[str, Any]:
    """Return the row of one planned rollout, keys in Gym's order (§1.1)."""
    planned = dict(row)
    params = {**planned[wire.PARAMS], **options.responses_create_params}
    if options.num_repeats_add_seed:
        params["metadata"] = seeded_metadata(params, rollout_index)
    planned[wire.PARAMS] = params
    mapped = _routed(row, options)
    if mapped is not None:
        planned[wire.AGENT_REF] = {"name": mapped}
    planned[wire.TASK_INDEX] = task.task_index
    if task.agent is not None and agent_name(planned) != task.agent:
        planned[wire.AGENT_REF] = {"name": task.agent}
    planned[wire.ROLLOUT_INDEX] = rollout_index
    return planned


def _routed(row: Mapping[str, Any], options: PlanOptions) -> str | None:
    """Return the agent that the map gives the row, before any fan-out."""
    routes = options.routes()
    agent, source = agent_name(row), row.get(wire.TASK_SOURCE)
    for name in (agent, source, _DEFAULT):
        if name is not None and name in routes:
            return routes[name]
    return options.default_agent if not agent and not source else None
