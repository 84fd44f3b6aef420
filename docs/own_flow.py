"""A flow of your own: our flow with other settings, then our steps on its output.

`python docs/own_flow.py OUTPUT` runs it once; `python docs/own_flow.py OUTPUT serve`
keeps a deployment of our flow alive in this process, without a worker.
"""

import asyncio
import sys
from pathlib import Path

from prefect import flow
from prefect.types.entrypoint import EntrypointType

from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.reward_profiling import reward_profiling
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.options import ServerOptions
from reward_profiling.tasks.derive_insights import derive_insights
from reward_profiling.tasks.profile_rewards import profile_rewards

patient = reward_profiling.with_options(retries=2, retry_delay_seconds=60)


def params(output: Path) -> RewardProfilingParams:
    """Two rollouts of each of the embedded environment's tasks."""
    return RewardProfilingParams(
        output=output,
        servers=ServerOptions(demo=True),
        plan=PlanOptions(num_repeats=2),
    )


@flow
async def gate(output: Path, threshold: float) -> float:
    """Profile twice: as the run did, and with a pass threshold of your own."""
    await patient(params(output))
    files = RunFiles(output)
    reading = ProfileOptions(pass_threshold=threshold)
    summary = await profile_rewards(files, reading, [])
    summary = await derive_insights(summary, files, reading)
    teaching = sum(agent.sometimes_pass for agent in summary.agents)
    return teaching / summary.num_scored_tasks


if __name__ == "__main__":
    output = Path(sys.argv[1])
    if "serve" in sys.argv:
        patient.serve(
            "own",
            parameters={"params": {"output": str(output), "servers": {"demo": True}}},
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
    else:
        print(asyncio.run(gate(output, threshold=0.5)))
