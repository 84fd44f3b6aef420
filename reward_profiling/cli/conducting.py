"""Runs the flow in this process and reports how it ended."""

import asyncio
from typing import Any, NamedTuple

import httpx
from prefect import tags
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort, Pause, PrefectException
from prefect.settings import PREFECT_API_URL

from reward_profiling.cli.exit_codes import STOPPED, ExitCode
from reward_profiling.cli.importing import to_stay
from reward_profiling.cli.prefect_fault import prefect_fault
from reward_profiling.cli.terminal.live import Live
from reward_profiling.cli.terminal.screen import warn
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.reward_profiling import reward_profiling
from reward_profiling.profiling.options import Strictness
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.outcome import RUN_TAG, too_bad
from reward_profiling.tasks.shared.prefect_internals import give_server_its_session
from reward_profiling.tasks.shared.present_run import present_run


class Ended(NamedTuple):
    """How a run ended: the exit code, and the summary if there is one."""

    exit_code: int
    summary: RunSummary | None = None
    message: str | None = None
    is_prefect_away: bool = False
    """Whether Prefect's server has stopped answering."""


def is_server_temporary() -> bool:
    """Say whether Prefect would start a server for this run alone."""
    return not PREFECT_API_URL.value()


async def conduct(params: RewardProfilingParams, live: Live) -> Ended:
    """Run the flow to its end; raise again what the flow raised."""
    if is_server_temporary():
        # The import takes over a second, and a run with a server does not need it.
        with to_stay():
            cost = give_server_its_session()
        if cost is not None:
            warn(cost)
    try:
        with tags(RUN_TAG):  # automations watch it as they watch deployed runs
            state = await reward_profiling(params, return_state=True)
    except (asyncio.CancelledError, Abort, Pause) as error:
        # A signal, or a person who ended or suspended the run in Prefect.
        is_told_to_stop = present_run().scope.exit_code is not None
        if not is_told_to_stop and isinstance(error, asyncio.CancelledError):
            raise
        return _ended(live.summary)._replace(message=STOPPED)
    except (httpx.HTTPError, PrefectException, RuntimeError) as error:
        # The flow's own errors come back in its state; this one is Prefect's.
        if live.summary is None:
            said = prefect_fault(error)
            return Ended(ExitCode.FAILED, None, said, is_prefect_away=True)
        warn("lost Prefect's server; its page does not show how this run ended")
        return _ended(live.summary, params.profile.strict)._replace(
            is_prefect_away=True
        )
    return await _ended_in(state, params, live)


async def _ended_in(
    state: State[Any], params: RewardProfilingParams, live: Live
) -> Ended:
    """Return how a finished flow ended; raise what it raised."""
    if not state.is_final():  # a person cancelled or suspended it meanwhile
        said = f"the run stays {state.name} in Prefect: {state.message}"
        return _ended(live.summary)._replace(message=said)
    result = await state.aresult(raise_on_failure=False)
    if isinstance(result, RunSummary):
        return _ended(result, params.profile.strict)
    if isinstance(result, Exception):
        raise result  # with its own traceback; main tells ours from a defect
    return Ended(ExitCode.FAILED, None, f"the run ended {state.name}: {state.message}")


def _ended(summary: RunSummary | None, strict: Strictness | None = None) -> Ended:
    if (code := present_run().scope.exit_code) is not None:
        return Ended(code, summary, STOPPED)
    if summary is None or summary.is_failed:
        return Ended(ExitCode.FAILED, summary)
    if summary.is_partial:
        return Ended(ExitCode.PARTIAL, summary)
    said = too_bad(strict, summary)
    return Ended(ExitCode.UNSOUND if said else ExitCode.WHOLE, summary, said)
