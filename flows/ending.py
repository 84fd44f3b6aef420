"""How a run ends in Prefect: its final state.

| state | type | when |
|---|---|---|
| Completed | COMPLETED | every planned rollout has a record |
| Partial | FAILED | some have none, or failed; the message says which |
| Failed | FAILED | a finding is as bad as `--strict` says, or the run broke |
| Interrupted | CRASHED | a signal came from outside, and rollouts are owed |
| Cancelled | CANCELLED | a person cancelled it |

Partial has the type FAILED, so that Prefect's retries and its Retry button collect the
rest. Automations tell the two apart by name.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Crashed, Failed

from reward_profiling.errors import RewardProfilingError
from reward_profiling.profiling.options import Strictness
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.outcome import (
    CANCELLED,
    FAILED,
    INTERRUPTED_STATE,
    PARTIAL_STATE,
    as_bad_as,
    state_message,
)
from reward_profiling.tasks.shared.prefect_internals import engine_client
from reward_profiling.tasks.shared.present_run import present_run
from reward_profiling.tasks.shared.run_page import announce_end, tell_warning
from reward_profiling.texts.visible import visible

CUT_SHORT = (asyncio.CancelledError, RewardProfilingError)
"""What a run raises if it was stopped early, or could not continue."""
_LIMIT_SECONDS = 5.0
_BY_A_PERSON = "a person cancelled the run"


async def final_state(
    summary: RunSummary, strict: Strictness | None
) -> State[RunSummary]:
    """Return the state that a run ends in; `strict` makes findings failures."""
    said = state_message(summary)
    is_told_to_stop = present_run().scope.exit_code is not None
    if is_told_to_stop and await is_being_cancelled():
        # Prefect puts a sentence of its own over the message: the log keeps ours.
        said = state_message(replace(summary, stopped=_BY_A_PERSON))
        tell_warning(said)
        announce_end(CANCELLED, Path(summary.output), said)
        return Cancelled(message=said, data=summary)
    if summary.is_partial and is_told_to_stop:
        return Crashed(name=INTERRUPTED_STATE, message=said, data=summary)
    if summary.is_partial:
        return Failed(name=PARTIAL_STATE, message=said, data=summary)
    if strict is not None and as_bad_as(strict, summary):
        return Failed(message=said, data=summary)
    return Completed(message=said, data=summary)


async def stopped_state(output: Path, cause: BaseException) -> State[RunSummary] | None:
    """Return the state of a run that was stopped before it had a summary.

    None if nobody cancelled it in Prefect: then the caller raises the cause.
    """
    if present_run().scope.exit_code is None:
        announce_end(FAILED, output, visible(str(cause)) or "the run was cut short")
        return None
    if not await is_being_cancelled():
        return None
    said = f"{_BY_A_PERSON}, outside the collection; every record is kept"
    tell_warning(said)
    announce_end(CANCELLED, output, said)
    return Cancelled(message=said)


async def is_being_cancelled() -> bool:
    """Ask Prefect whether a person cancelled the present run; False if unknown."""
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
        get_run_logger().debug("cannot read the run's state from Prefect: %s", error)
        return None
    return run.state
