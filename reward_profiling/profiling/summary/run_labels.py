"""The names that Gym gives to the agents of a run."""

from collections.abc import Iterable

from reward_profiling.planning.on_disk.plan_columns import Runner


def run_labels(runners: Iterable[Runner]) -> dict[str, str]:
    """Label each run key: the agent's name where that is unambiguous (§4.3)."""
    agent_by_key: dict[str, str | None] = {}
    for agent, run_key in runners:
        if run_key is not None:
            agent_by_key.setdefault(run_key, agent)
    agents = list(agent_by_key.values())
    labels = {
        key: agent if agent is not None and agents.count(agent) == 1 else key
        for key, agent in agent_by_key.items()
    }
    taken = list(labels.values())
    return {
        key: label if taken.count(label) == 1 else key for key, label in labels.items()
    }
