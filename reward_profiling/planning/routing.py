"""Where a task row is sent: by what it names, and by what the options say.

Source: `gym-contract.md` §2.2, steps 3b and 3c.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.row_members import agent_name, taskset_of

DEFAULT = "_default"
"""Name in the options' maps that stands for every other row."""


@dataclass(frozen=True, slots=True)
class Routing:
    """What a task row names, and the environment server that it is sent to."""

    agent: str | None
    task_source: str | None
    server: str | None = None
    """Environment server that it is stamped with; then its agent decides nothing."""
    taskset: str | None = None
    """That of a task already made, which is asked for as an episode."""

    @property
    def key(self) -> str | None:
        """What fan-out and repeats look the row up by."""
        if self.server is not None:
            return self.taskset or self.task_source or self.server
        return self.task_source if self.agent is None else self.agent


def routing_names(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return (agent, task source) as the row names them; "" names none.

    Raises:
        RecordError: one of them is not text.
    """
    agent, source = agent_name(row), row.get(wire.TASK_SOURCE)
    if source is not None and not isinstance(source, str):
        raise RecordError(f"{wire.TASK_SOURCE} is not text")
    return agent, source


def chosen_server(row: Mapping[str, Any], options: PlanOptions) -> str | None:
    """Return the environment server that a row is sent to; None where an agent's is.

    Raises:
        RecordError: no route leads from the row to one.
    """
    taskset, routes = taskset_of(row), options.environment_server_routes
    if taskset is not None:
        if taskset not in routes:
            raise RecordError(
                f"belongs to taskset {taskset!r}, which has no route; pass"
                f' --environment-server-routes \'{{"{taskset}": "SERVER"}}\''
            )
        return routes[taskset]
    if options.environment_routing_mode == "taskset":
        raise RecordError(
            "has no task_id.taskset with a task_input; use"
            " --environment-routing-mode agent for a mix with such rows"
        )
    is_legacy = options.environment_routing_mode == "legacy"
    return options.environment_server_name if is_legacy else None


def mapped_agent(
    agent: str | None, source: str | None, options: PlanOptions
) -> str | None:
    """Return the agent that the options give a row, before any fan-out.

    None where they leave the row to the agent or the task source that it names.
    """
    routes = options.routes()
    for name in (agent, source, DEFAULT):
        if name is not None and name in routes:
            return routes[name]
    return options.default_agent if not agent and not source else None
