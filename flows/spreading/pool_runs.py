"""Requests to Prefect's server about the runs that collect shards."""

from collections.abc import Sequence
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
)
from prefect.client.schemas.objects import FlowRun, State, WorkerStatus
from prefect.deployments import arun_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.utilities.urls import url_for
from pydantic_core import to_jsonable_python

from reward_profiling.errors import ConfigError
from reward_profiling.flows.shard_run import ShardRun
from reward_profiling.flows.spreading.led_shards import LedShards

_REFUSED = frozenset({400, 403, 404, 409, 422})
_SHOWN = 300
_PAGE = 200
"""Runs that the server tells of at once."""


async def check_deployment(name: str) -> None:
    """Check that the deployment that collects shards is there.

    Raises:
        ConfigError: it is not.
    """
    async with get_client() as client:
        try:
            await client.read_deployment_by_name(name)
        except ObjectNotFound as error:
            raise ConfigError(
                f"--shard-deployment: Prefect's server has no deployment {name};"
                " register it with `reward-profiling deploy`, or give another one"
            ) from error


async def submit(led: LedShards, index: int, start: int) -> FlowRun:
    """Submit a shard to a worker; submitting the same start twice gives one run.

    Raises:
        ConfigError: the deployment is of another version of this package.
        httpx.HTTPError: Prefect's server does not answer.
    """
    params = ShardRun(
        output=led.files.rollouts,
        index=index,
        collect=led.options,
        servers=led.servers,
        leader=led.leader,
    )
    try:
        return await arun_deployment(
            led.spread.shard_deployment,
            parameters={"params": to_jsonable_python(params)},
            timeout=0,
            flow_run_name=f"{led.name(index)} of {led.files.rollouts}",
            idempotency_key=f"{flow_run.id}-{led.leader.token}-{index}-{start}",
            job_variables=led.spread.runner_settings or None,
        )
    except httpx.HTTPStatusError as error:
        if error.response.status_code not in _REFUSED:
            raise
        raise ConfigError(
            f"the deployment {led.spread.shard_deployment} refuses the shard"
            f" ({error.response.text[:_SHOWN]}); register it again with"
            " `reward-profiling deploy`, in the version that its workers have"
        ) from error


async def states_of(
    client: PrefectClient, ids: Sequence[UUID]
) -> dict[UUID, State | None]:
    """Read the states of runs.

    Raises:
        httpx.HTTPError: Prefect's server does not answer.
    """
    states: dict[UUID, State | None] = {}
    for first in range(0, len(ids), _PAGE):
        wanted = FlowRunFilterId(any_=list(ids[first : first + _PAGE]))
        runs = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(id=wanted), limit=_PAGE
        )
        states |= {run.id: run.state for run in runs}
    return states


async def progress_of(client: PrefectClient, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Read what runs last reported of their progress, at most `_PAGE` of them."""
    wanted = ArtifactFilterFlowRunId(any_=list(ids[:_PAGE]))
    found = await client.read_artifacts(
        artifact_filter=ArtifactFilter(flow_run_id=wanted), limit=_PAGE
    )
    return {one.flow_run_id: one.description or "" for one in found if one.flow_run_id}


async def workers_of(client: PrefectClient, deployment: str) -> str:
    """Return how many workers the deployment's work pool has, and how to start one."""
    pool = (await client.read_deployment_by_name(deployment)).work_pool_name
    if pool is None:
        return f"the deployment {deployment} has no work pool"
    workers = await client.read_workers_for_work_pool(pool)
    online = sum(worker.status == WorkerStatus.ONLINE for worker in workers)
    return (
        f"{online} workers of the work pool {pool} are online; start one with"
        f" `prefect worker start --pool {pool}`"
    )


def page_url(run_id: UUID) -> str:
    """Return the address of a run's page."""
    return url_for("flow-run", run_id) or ""
