"""The lines of a plan: made of its input's rows, and of the plan that is there already.

A row is read again from its place when its line is made, so that memory is set by the
number of task rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.files.json_lines import open_to_read, read_row
from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.planning.earlier_plan import EarlierPlan
from reward_profiling.planning.planned_tasks import PlannedTask
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.planning.task_rows import materialized_row

Resolve = Callable[[frozenset[str]], dict[str, str]]
"""From task sources, or from environment servers, to their agents."""


class PlanLines:
    """The lines of a plan in dispatch order; may be read more than once.

    `agents` are those that only the servers could name, by the place of the task row.
    """

    def __init__(
        self,
        checked: CheckedInput,
        agents: dict[int, str],
        earlier: EarlierPlan,
        *,
        is_collected: bool,
    ) -> None:
        self.is_collected = is_collected
        self._checked = checked
        self._agents = agents
        tasks = [
            replace(task, agent=task.agent or agents.get(task.place))
            for task in checked.plan.tasks
        ]
        plan = replace(checked.plan, tasks=tasks)
        if earlier.indices:
            plan = plan.keeping(earlier.indices, is_adaptive=earlier.is_adaptive)
        self._plan = plan
        self._earlier = earlier

    def __iter__(self) -> Iterator[tuple[RolloutKey, bytes]]:
        """Yield each planned rollout's key and its line, without the newline.

        Raises:
            ConfigError: the input cannot be read again.
            RecordError: a row is no longer what was checked.
        """
        options = self._checked.options
        rollouts = self._plan.rollouts(interleave=options.interleave_repeats)
        place, row = -1, {}
        with open_to_read(self._checked.path) as file:
            for task, index in rollouts:
                if task.place != place:
                    place, row = task.place, read_row(file, task.place)
                yield (task.task_index, index), self._line(row, task, index)

    def _line(self, row: dict[str, Any], task: PlannedTask, index: int) -> bytes:
        checked, late = self._checked, self._agents.get(task.place)
        known = replace(task, agent=None) if late else task
        planned = materialized_row(
            row, known, index, checked.options, checked.additions
        )
        text = orjson.dumps(planned)
        if late is None:
            return text
        key = (task.task_index, index)
        if task.server and self.is_collected and self._earlier.has(key, text):
            return text  # planned before without its agent, which it can do without
        # Gym appends an agent that only the servers could name.
        return orjson.dumps({**planned, wire.AGENT_REF: {"name": late}})


def late_agents(
    checked: CheckedInput, resolve: Resolve | None, attribute: Resolve | None
) -> dict[int, str]:
    """Return the agent of each row that names none, as the servers know it, by place.

    `resolve` is asked for the agents of task sources, `attribute` for those of
    environment servers; None asks nobody, and what they raise goes through. A server
    that stands for no one agent leaves its rows without. Places are in bytes.

    Raises:
        ConfigError: the input cannot be read again.
    """
    lacking = [task for task in checked.plan.tasks if task.lacks_agent]
    servers = {task.place: task.server for task in lacking if task.server is not None}
    agents = _agents_by_source(
        checked, [task.place for task in lacking if task.server is None], resolve
    )
    if attribute is not None and servers:
        found = attribute(frozenset(servers.values()))
        agents |= {p: found[name] for p, name in servers.items() if name in found}
    return agents


def _agents_by_source(
    checked: CheckedInput, places: list[int], resolve: Resolve | None
) -> dict[int, str]:
    """Return the agent of each row that only names a task source, by its place."""
    if resolve is None or not places:
        return {}
    with open_to_read(checked.path) as file:
        sources = {p: str(read_row(file, p)[wire.TASK_SOURCE]) for p in places}
    agents = resolve(frozenset(sources.values()))
    return {place: agents[source] for place, source in sources.items()}
