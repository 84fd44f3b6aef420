"""Which server runs a row's rollout.

Source: `gym-contract.md` §3.1 and §3.2. Names are checked for the whole plan before
the first request, and every fault is in one message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import DatasetError, ServersNotReadyError
from reward_profiling.servers.configured_servers import (
    ConfiguredServer,
    configured_servers,
)

_RESOURCES = wire.RESOURCES_SERVERS


@dataclass(frozen=True, slots=True)
class Route:
    """Where rollouts are posted, and how their records are stamped."""

    url: str
    """Base URL, without a trailing slash."""
    server: str | None
    """Environment server; None for servers older than 0.6, which have none."""
    result_type: str | None
    """Implementation of the environment server."""


class Servers:
    """The agents and environment servers of one running configuration."""

    def __init__(self, config: Mapping[str, Any], head_url: str = "") -> None:
        self.head_url = head_url
        """Where the configuration was read."""
        self._agents = {i.name: i for i in configured_servers(config, wire.AGENTS)}
        self._resources = {
            i.name: i for i in configured_servers(config, wire.RESOURCES_SERVERS)
        }
        self._allows_any_pairing = config.get("allow_unsupported_pairing") is True
        model = config.get("policy_model_name")
        is_name = isinstance(model, str) and model and "${" not in model
        self._policy_model = str(model) if is_name else None
        self._environments = list(configured_servers(config, wire.ENVIRONMENT_SERVERS))
        if not self._agents and not self._environments:
            raise ServersNotReadyError(
                "the head server's configuration has no agent; start the servers with"
                " an environment"
            )

    @property
    def policy_model(self) -> str | None:
        """The model that answers, as the configuration names it; None if not named."""
        return self._policy_model

    @property
    def agents(self) -> list[str]:
        """Names of all agents, in order."""
        return sorted(self._agents)

    @property
    def assignment(self) -> str:
        """Who runs what, as text: it differs where a row could go to another agent."""
        agents = [
            f"{agent.name}({','.join(sorted(agent.references(wire.RESOURCES_SERVERS)))})"
            for agent in self._agents.values()
        ]
        pinned = [
            f"{name}[{','.join(sorted(server.pinned_agents))}]"
            for name, server in self._resources.items()
        ]
        fronts = [
            f"{server.name}<{','.join(sorted(server.fronted))}>"
            for server in self._environments
        ]
        return " ".join((*sorted(agents), *sorted(pinned), *sorted(fronts)))

    @property
    def environment_servers(self) -> list[str]:
        """Names of all environment servers, in order."""
        return sorted(instance.name for instance in self._environments)

    def routes(
        self,
        agents: Iterable[str],
        stamped: Iterable[tuple[str, str | None]] = (),
    ) -> dict[str, Route]:
        """Return the route of each agent, and of each server that rows ask for by name.

        `stamped` are the (environment server, agent) pairs of those rows.

        Raises:
            DatasetError: agents that are unknown, not fronted by exactly one
                environment server, or without an address; servers that are unknown, or
                do not front the agent of their rows; all of them are named.
        """
        faults: list[str] = []
        routes: dict[str, Route] = {}
        for agent in sorted(set(agents)):
            route = self._route(agent, faults)
            if route is not None:
                routes[agent] = route
        routes |= self._named_servers(sorted(stamped, key=str), faults)
        if faults:
            raise DatasetError("the running servers cannot run this plan:", faults)
        return routes

    def _named_servers(
        self, stamped: Iterable[tuple[str, str | None]], faults: list[str]
    ) -> dict[str, Route]:
        known = {server.name: server for server in self._environments}
        routes: dict[str, Route] = {}
        for name, agent in stamped:
            if name not in known:
                fault = f"environment server {name!r} is unknown"
                faults.append(f"{fault}; {_suggestion(name, known)}")
                continue
            fronted = known[name].fronted
            if agent and fronted and agent not in fronted:
                names = ", ".join(sorted(fronted))
                faults.append(
                    f"environment server {name!r} does not front agent {agent!r}, but"
                    f" {names}"
                )
            route = _checked(known[name], faults, is_environment=True)
            if route is not None:
                routes[name] = route
        faults[:] = dict.fromkeys(faults)  # one for all rows of a server
        return routes

    def attributed_agents(self, servers: Iterable[str]) -> dict[str, str]:
        """Return the agent that each environment server's records are counted for.

        It is the one of its field `agent_server`, else the only one that it fronts; a
        server that is unknown, or fronts several, has none.
        """
        found: dict[str, str] = {}
        for server in self._environments:
            fronted = server.fronted
            bound = server.fields.get("agent_server")
            if server.name in set(servers) and fronted:
                first = bound.get("name") if isinstance(bound, Mapping) else None
                if first is not None or len(fronted) == 1:
                    found[server.name] = str(first or next(iter(fronted)))
        return found

    def _route(self, agent: str, faults: list[str]) -> Route | None:
        if agent not in self._agents:
            faults.append(
                f"agent {agent!r} is unknown; {_suggestion(agent, self._agents)}"
            )
            return None
        if not self._environments:
            return _checked(self._agents[agent], faults, is_environment=False)
        fronting = [e for e in self._environments if agent in e.fronted]
        if len(fronting) != 1:
            names = ", ".join(e.name for e in fronting) or "none"
            faults.append(
                f"agent {agent!r} must be fronted by exactly one environment server;"
                f" found {names}"
            )
            return None
        return _checked(fronting[0], faults, is_environment=True)

    def refuse_pairings(self, pairs: Iterable[tuple[str, str | None]]) -> None:
        """Refuse rows whose verifier does not accept the agent that runs them.

        `pairs` are the (agent, task source) pairs of a plan; the agents are known. A
        configuration with `allow_unsupported_pairing: true` rules out none.

        Raises:
            DatasetError: names every pairing that a resources server rules out.
        """
        if self._allows_any_pairing:
            return
        faults = {
            fault
            for agent, source in pairs
            if agent in self._agents  # a server by its name may front none
            for verifier in (source, *self._agents[agent].references(_RESOURCES))
            if verifier and (fault := self._pairing_fault(agent, verifier))
        }
        if faults:
            raise DatasetError(
                "a verifier does not accept the agent of its rows"
                " (--allow-unsupported-pairing skips this check):",
                sorted(faults),
            )

    def _pairing_fault(self, agent: str, verifier: str) -> str | None:
        server = self._resources.get(verifier)
        allowed = server.fields.get("allowed_agents") if server else None
        accepted = [allowed] if isinstance(allowed, str) else allowed
        runs = self._agents[agent].implementation
        if not isinstance(accepted, list) or not accepted or runs in accepted:
            return None
        names = ", ".join(map(str, accepted))
        return f"agent {agent!r} runs {runs!r}; {verifier!r} accepts only {names}"

    def environment(self, name: str) -> Route | None:
        """Return the route of an environment server; None when it is not known."""
        named = [server for server in self._environments if server.name == name]
        return _checked(named[0], [], is_environment=True) if named else None

    def agents_of(self, task_sources: Iterable[str]) -> dict[str, str]:
        """Return the agent that serves each task source.

        Raises:
            DatasetError: sources that no agent, or more than one, serves.
        """
        faults: list[str] = []
        found: dict[str, str] = {}
        for source in sorted(set(task_sources)):
            candidates = self._candidates(source)
            if len(candidates) == 1:
                found[source] = candidates[0]
            elif source in self._resources:
                names = ", ".join(candidates) or "none"
                faults.append(
                    f"task source {source!r} needs exactly one agent; found {names}"
                )
            else:
                known = [*self._agents, *self._resources]
                faults.append(
                    f"task source {source!r} is unknown; {_suggestion(source, known)}"
                )
        if faults:
            raise DatasetError("the running servers cannot run this plan:", faults)
        return found

    def _candidates(self, source: str) -> list[str]:
        if source in self._agents:
            return [source]
        if source not in self._resources:
            return []
        pinned = self._resources[source].pinned_agents
        if pinned:
            return sorted(pinned)
        return sorted(
            agent.name
            for agent in self._agents.values()
            if source in agent.references(wire.RESOURCES_SERVERS)
        )


def _checked(
    server: ConfiguredServer, faults: list[str], *, is_environment: bool
) -> Route | None:
    if server.url is None:
        faults.append(
            f"server {server.name!r} has no usable address: host"
            f" {server.fields.get('host')!r}, port {server.fields.get('port')!r}"
        )
        return None
    if is_environment:
        return Route(server.url, server.name, server.implementation)
    return Route(server.url, None, None)


def _suggestion(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"the servers have {', '.join(names) or 'none'}"
