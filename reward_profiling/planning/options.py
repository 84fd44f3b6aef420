"""The options for turning task rows into planned rollouts."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge

from reward_profiling.errors import ConfigError
from reward_profiling.values import Checked, JsonObject, Name

Repeats = Annotated[int, Ge(1)]
RoutingMode = Literal["agent", "legacy", "taskset"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanOptions(Checked):
    """How task rows become planned rollouts."""

    num_repeats: Repeats | dict[str, Repeats] | None = 1
    """Rollouts per task: a number, or a JSON object of agent name to number with an
    optional "_default"."""

    num_repeats_add_seed: bool = False
    """Give each repeat its own seed, in metadata.extra_body of its request."""

    interleave_repeats: bool = False
    """Order the plan by repeat (abcabc) instead of by task (aabbcc)."""

    limit: Annotated[int, Ge(1)] | None = None
    """Plan only the first N task rows; at least 1. Default: all."""

    agent_name: str | None = None
    """Send every row to this agent, whatever the row says."""

    default_agent: str | None = None
    """Send rows that name neither an agent nor a task source to this agent."""

    agent_map: dict[str, str] = field(default_factory=dict)
    """JSON object that re-routes agents or task sources: from name to agent name;
    "_default" catches every other row."""

    fan_out: dict[str, list[str]] = field(default_factory=dict)
    """JSON object that runs the rows of one agent or task source on several agents."""

    responses_create_params: JsonObject = field(default_factory=dict)
    """JSON object merged into every row's responses_create_params, such as
    {"temperature": 1.0}; its top-level keys win."""

    prompt_config: Name | None = None
    """YAML file with a "user" and optionally a "system" template that make each row's
    input: {field} is replaced by the row's field; write {{ and }} for braces."""

    skills: Name | None = None
    """Folder of skill folders, each with a SKILL.md. Every row gets its path, a digest
    of its content and its skills, for agents that use them."""

    environment_routing_mode: RoutingMode = "agent"
    """Where a row is sent: "agent", to the environment server of its agent; "legacy",
    to environment_server_name for every row; "taskset", to the server that
    environment_server_routes gives, and only such rows are allowed. Rows with task_id
    and task_input follow environment_server_routes in every mode."""

    environment_server_name: Name | None = None
    """Environment server that runs every row in the mode "legacy"."""

    environment_server_routes: dict[str, Name] = field(default_factory=dict)
    """JSON object that routes rows with task_id and task_input: from task_id.taskset
    to environment server."""

    def check(self) -> None:
        """Refuse agents, repeats and routes that contradict each other.

        Raises:
            ConfigError: they do.
        """
        self._check_agents()
        if isinstance(self.num_repeats, dict) and not self.num_repeats:
            raise ConfigError("num_repeats is an empty object; name an agent in it")
        mode = self.environment_routing_mode
        if mode == "legacy" and self.environment_server_name is None:
            raise ConfigError("the routing mode legacy needs environment_server_name")
        if mode == "taskset" and not self.environment_server_routes:
            raise ConfigError(
                "the routing mode taskset needs environment_server_routes"
            )

    def _check_agents(self) -> None:
        chosen = self.agent_map.get("_default")
        if self.agent_name and chosen and chosen != self.agent_name:
            raise ConfigError(
                f"agent_name {self.agent_name!r} and agent_map._default {chosen!r}"
                " differ; give one of them"
            )
        if self.default_agent and (self.agent_name or chosen):
            raise ConfigError(
                "default_agent has no effect beside agent_name or agent_map._default;"
                " give one of them"
            )
        for name, agents in self.fan_out.items():
            if not agents or len(set(agents)) < len(agents):
                raise ConfigError(
                    f"fan_out[{name!r}] must list at least one agent, each once"
                )

    def routes(self) -> dict[str, str]:
        """Return `agent_map` with `agent_name` folded in as its default."""
        if self.agent_name:
            return {**self.agent_map, "_default": self.agent_name}
        return dict(self.agent_map)
