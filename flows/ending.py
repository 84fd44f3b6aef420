"""How a run ends in Prefect: the state that says what it came to.

| state | type | when |
|---|---|---|
| Completed | COMPLETED | every planned rollout has a record |
| Partial | FAILED | some have none, or failed; the message says which |
| Failed | FAILED | a finding is as bad as `--strict` says, or the run broke |
| Interrupted | CRASHED | a signal came from outside, and rollouts are owed |
| Cancelled | CANCELLED | a person cancelled it |

A state's colour is its type's. Partial is of the type FAILED, so that what Prefect does
for a run that is not done, its retries and its Retry button, does the rest; automations
tell it apart by its name.
"""

import asyncio

import httpx
from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Crashed, Failed

from reward_profiling.errors import RewardProfilingError
from reward_profiling.profiling.options import Strictness
from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.reporting.outcome import (
    INTERRUPTED_STATE,
    PARTIAL_STATE,
    as_bad_as,
    state_message,
)
from reward_profiling.tasks.shared.prefect_internals import engine_client
from reward_profiling.tasks.shared.present_run import present_run

CUT_SHORT = (asyncio.CancelledError, RewardProfilingError)
"""What a run raises that was stopped before its end, or could not go on."""
_LIMIT_SECONDS = 5.0


async def final_state(
    summary: RunSummary, strict: Strictness | None
) -> State[RunSummary]:
    """Return the state that a run ends in; `strict` makes findings failures."""
    said = state_message(summary)
    is_told_to_stop = present_run().scope.exit_code is not None
    if is_told_to_stop and await is_being_cancelled():
        return Cancelled(message=said, data=summary)
    if summary.is_partial and is_told_to_stop:
        return Crashed(name=INTERRUPTED_STATE, message=said, data=summary)
    if summary.is_partial:
        return Failed(name=PARTIAL_STATE, message=said, data=summary)
    if strict is not None and as_bad_as(strict, summary):
        return Failed(message=said, data=summary)
    return Completed(message=said, data=summary)


async def stopped_state() -> State[RunSummary] | None:
    """Return the state of a run that was cut short before there is a summary.

    None when nobody cancelled it in Prefect: the cause goes on its way.
    """
    if present_run().scope.exit_code is None or not await is_being_cancelled():
        return None
    return Cancelled(message="cancelled before the collection had begun or after it")


async def is_being_cancelled() -> bool:
    """Ask Prefect whether a person cancelled the present run; not known is no."""
    state = await state_in_prefect()
    return state is not None and (state.is_cancelling() or state.is_cancelled())


async def state_in_prefect() -> State[object] | None:
    """Ask Prefect for the present run's state; None where it is not known."""
    if FlowRunContext.get() is None:
        return None
    try:
        async with asyncio.timeout(_LIMIT_SECONDS), engine_client() as client:
            run = await client.read_flow_run(flow_run.id)
    except (httpx.HTTPError, OSError, PrefectException, ValueError) as error:
        get_run_logger().debug("Prefect's server does not say: %s", error)
        return None
    return run.state
