"""The steps of a run by the functions that they call, without Prefect.

    python benchmarks/plain_run.py INPUT OUTPUT HEAD_URL IN_FLIGHT REPEATS

What `orchestration.py` compares a flow with.
"""

import asyncio
import sys
from pathlib import Path

from tasks.adapters.run_directory import RunFiles
from tasks.core.options import (
    AggregateOptions,
    CollectOptions,
    PlanOptions,
    ProfileOptions,
)
from tasks.core.progress import Progress
from tasks.core.run_report import report
from tasks.operations.aggregating import aggregate
from tasks.operations.collecting import collect_shard, open_shard, read_servers
from tasks.operations.insights_run import add_insights
from tasks.operations.materializing import check_input, materialize
from tasks.operations.profiling_run import profile_output
from tasks.operations.report_run import add_report
from tasks.operations.run_lists import page_of


def seen(progress: Progress, note: str | None) -> None:
    """Observe as a run does, and show nothing."""


async def run(source: Path, files: RunFiles, head: str, numbers: list[int]) -> None:
    """Plan, collect, aggregate and profile."""
    in_flight, repeats = numbers
    known = await read_servers(head)
    checked = check_input(source, PlanOptions(num_repeats=repeats))
    materialize(checked, files, known.agents_of, known.attributed_agents)
    options = CollectOptions(concurrency=in_flight)
    await collect_shard(open_shard(files, 0, 1, options), known, options, seen)
    await aggregate(files, known, AggregateOptions())
    summary = profile_output(files, ProfileOptions())
    summary = add_report(add_insights(summary, files, ProfileOptions()), files)
    report(page_of(summary, files))


if __name__ == "__main__":
    given, output, url, *rest = sys.argv[1:]
    target = RunFiles(Path(output))
    target.rollouts.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(Path(given), target, url, [int(one) for one in rest]))
