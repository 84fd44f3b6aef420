"""Run names: how often which task file is profiled, and into which output."""

from datetime import UTC, datetime

from prefect.runtime import flow_run

from reward_profiling.flows.parameters import RewardProfilingParams


def run_name() -> str:
    """Name the present flow run after its parameters."""
    params = flow_run.parameters.get("params")
    if isinstance(params, dict):
        params = RewardProfilingParams.made(params)
    if not isinstance(params, RewardProfilingParams):
        return "profile"
    return sentence(params.at(scheduled_start()))


def scheduled_start() -> datetime:
    """Return the scheduled start of the present run; a retry does not change it."""
    return flow_run.scheduled_start_time or datetime.now(UTC)


def sentence(params: RewardProfilingParams) -> str:
    """Say what a run does."""
    repeats = params.plan.num_repeats or 1
    how_often = "repeats by agent"
    if isinstance(repeats, int):
        how_often = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return f"{how_often} of {params.input_path.stem} into {params.output}"
