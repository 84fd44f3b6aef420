"""Step: waits until every server is ready."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.shared.run_page import servers_observer, tell

SCRIPTED = "scripted-policy"
"""The embedded environment's name for its scripted policy."""


@task(
    name="start-servers",
    task_run_name="servers at {head_url}",
    cache_policy=NO_CACHE,
    persist_result=False,  # handed on in this process, and kept nowhere
)
async def start_servers(head_url: str, timeout_seconds: float) -> Servers:
    """Wait until the servers are ready; the flow starts and stops them.

    Raises:
        ServersNotReadyError: nothing listens there, or it was not ready in time.
    """
    observe = servers_observer()
    servers = await wait_until_ready(head_url, timeout_seconds, tell, observe)
    tell(f"servers are ready at {head_url}: {', '.join(servers.agents)}")
    model = servers.policy_model
    if model == SCRIPTED:
        tell("A script gives the answers. These rewards do not measure a model.")
    elif model:
        tell(f"answers come from {model}")
    return servers
