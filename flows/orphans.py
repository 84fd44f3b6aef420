"""Steps of a run whose process was killed: nobody would ever end them.

A run that starts again is the same run to Prefect, so its page would show them Running
for good.
"""

import asyncio

import httpx
from prefect import get_run_logger
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from prefect.states import Crashed

from reward_profiling.tasks.shared.prefect_internals import engine_client

_LIMIT_SECONDS = 10.0
_SAID = "its process was killed; the run did the rest when it started again"


async def close_orphans() -> None:
    """Mark the steps that an earlier process of this run left Running as Crashed."""
    if not flow_run.id or (flow_run.run_count or 0) <= 1:
        return
    open_states = [StateType.RUNNING, StateType.PENDING]
    try:
        async with asyncio.timeout(_LIMIT_SECONDS), engine_client() as client:
            left = await client.read_task_runs(
                flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run.id])),
                task_run_filter=TaskRunFilter(
                    state=TaskRunFilterState(
                        type=TaskRunFilterStateType(any_=open_states)
                    )
                ),
            )
            for step in left:
                state: State[object] = Crashed(message=_SAID)
                await client.set_task_run_state(step.id, state, force=True)
    except (httpx.HTTPError, OSError, PrefectException, ValueError) as error:
        get_run_logger().debug("cannot close the steps of before: %s", error)
