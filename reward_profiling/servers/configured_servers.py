"""Servers as the merged configuration names them, and what their fields point to."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reward_profiling import wire

_LAST_PORT = 65_535
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.%]+")
_DEFAULT_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """One server instance of the merged configuration."""

    name: str
    implementation: str
    fields: Mapping[str, Any]

    @property
    def url(self) -> str | None:
        """Base URL; None when host or port cannot be those of a server."""
        host = str(self.fields.get("host") or _DEFAULT_HOST)
        port = str(self.fields.get("port"))
        is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT
        if not is_port or not _HOST.fullmatch(host):
            return None
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def references(self, server_type: str) -> list[str]:
        """Return the names of the instances of a type that the fields point to."""
        return [
            str(value["name"])
            for value in self.fields.values()
            if isinstance(value, Mapping)
            and value.get("type") == server_type
            and "name" in value
        ]

    @property
    def fronted(self) -> set[str]:
        """Names of the agents that an environment server fronts."""
        fronted = set(self.references(wire.AGENTS))
        agent_server = self.fields.get("agent_server")
        if isinstance(agent_server, Mapping) and "name" in agent_server:
            fronted.add(str(agent_server["name"]))
        return fronted

    @property
    def pinned_agents(self) -> set[str]:
        """Names of the agents that a resources server's datasets name."""
        datasets = self.fields.get("datasets")
        if not isinstance(datasets, list):
            return set()
        return {
            str(dataset["agent"])
            for dataset in datasets
            if isinstance(dataset, Mapping) and dataset.get("agent")
        }


def configured_servers(
    config: Mapping[str, Any], server_type: str
) -> Iterator[ConfiguredServer]:
    """Yield the servers of a type, in the configuration's order."""
    for name, block in config.items():
        implementations = block.get(server_type) if isinstance(block, Mapping) else None
        if isinstance(implementations, Mapping) and implementations:
            implementation, fields = next(iter(implementations.items()))
            yield ConfiguredServer(
                str(name),
                str(implementation),
                fields if isinstance(fields, Mapping) else {},
            )
