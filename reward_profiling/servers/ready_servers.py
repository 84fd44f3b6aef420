"""Servers that are up, as steps hand them on."""

from dataclasses import dataclass

from reward_profiling.values import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadyServers(Checked):
    """Servers that are up. Only names travel: the configuration may hold secrets."""

    head_url: str
    """Their head server."""

    agents: tuple[str, ...]
    """Names of the agents they run."""

    policy_model: str | None = None
    """Name of the model that answers; None where the servers do not say."""

    assignment: str = ""
    """Who runs what, by name."""
