"""Step: the servers are up, and every one of them is ready."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from reward_profiling.servers.readiness import wait_until_ready
from reward_profiling.servers.routes import Servers
from reward_profiling.tasks.shared.run_page import servers_observer, tell

SCRIPTED = "scripted-policy"
"""What the embedded environment calls its policy when no model was given."""


@task(
    name="start-servers",
    task_run_name="servers at {head_url}",
    cache_policy=NO_CACHE,
    persist_result=False,  # handed on in this process, and kept nowhere
)
async def start_servers(head_url: str, timeout_seconds: float) -> Servers:
    """Wait until the servers are ready; their life belongs to the flow.

    Raises:
        ServersNotReadyError: nothing listens there, or it was not ready in time.
    """
    observe = servers_observer()
    servers = await wait_until_ready(head_url, timeout_seconds, tell, observe)
    tell(f"servers are ready at {head_url}: {', '.join(servers.agents)}")
    model = servers.policy_model
    if model == SCRIPTED:
        tell("answers come from a script: such rewards say nothing of any model")
    elif model:
        tell(f"answers come from {model}")
    return servers
