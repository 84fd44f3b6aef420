"""Runs the flow in this process and says how it ended."""

import asyncio
from typing import NamedTuple

from flows.exit_codes import ExitCode
from flows.parameters import RewardProfilingParams
from flows.reward_profiling import reward_profiling
from flows.terminal import STOPPED
from tasks.core.models import RunSummary
from tasks.operations.stopping import exit_code_of_signal


class Ended(NamedTuple):
    """How a run ended: its summary if it came that far, and the exit code."""

    exit_code: int
    summary: RunSummary | None = None
    message: str | None = None


async def conduct(params: RewardProfilingParams) -> Ended:
    """Run the flow to its end; what the flow raised is raised again."""
    try:
        state = await reward_profiling(params, return_state=True)
    except asyncio.CancelledError:
        code = exit_code_of_signal()
        if code is None:
            raise
        return Ended(code, None, STOPPED)
    result = await state.aresult(raise_on_failure=False)
    if isinstance(result, RunSummary):
        return Ended(_code(result), result)
    if isinstance(result, Exception):
        raise result  # with its own traceback; main tells ours from a defect
    return Ended(ExitCode.FAILED, None, f"the run ended {state.name}: {state.message}")


def _code(summary: RunSummary) -> int:
    if (code := exit_code_of_signal()) is not None:
        return code
    if summary.is_failed:
        return ExitCode.FAILED
    return ExitCode.PARTIAL if summary.is_partial else ExitCode.WHOLE
