"""A run by the functions that its steps call, without Prefect, and what it shows.

    python benchmarks/plain_run.py INPUT OUTPUT HEAD_URL IN_FLIGHT REPEATS

What `orchestration.py` compares a flow with. A terminal is told the same.
"""

import asyncio
import sys
from pathlib import Path

from flows.terminal import Live, show_summary
from tasks.adapters.run_directory import RunFiles
from tasks.core.options import (
    AggregateOptions,
    CollectOptions,
    PlanOptions,
    ProfileOptions,
)
from tasks.core.run_report import report
from tasks.operations.aggregating import aggregate
from tasks.operations.collecting import collect_shard, open_shard, read_servers
from tasks.operations.insights_run import add_insights
from tasks.operations.materializing import check_input, materialize
from tasks.operations.profiling_run import profile_output
from tasks.operations.report_run import add_report
from tasks.operations.run_lists import page_of


async def run(source: Path, files: RunFiles, head: str, numbers: list[int]) -> None:
    """Plan, collect, aggregate and profile."""
    in_flight, repeats = numbers
    live = Live()
    known = await read_servers(head)
    checked = check_input(source, PlanOptions(num_repeats=repeats))
    materialize(checked, files, known.agents_of, known.attributed_agents)
    options = CollectOptions(concurrency=in_flight)
    await collect_shard(open_shard(files, 0, 1, options), known, options, live.observe)
    await aggregate(files, known, AggregateOptions())
    summary = profile_output(files, ProfileOptions())
    summary = add_report(add_insights(summary, files, ProfileOptions()), files)
    report(page_of(summary, files))
    show_summary(summary)


if __name__ == "__main__":
    given, output, url, *rest = sys.argv[1:]
    target = RunFiles(Path(output))
    target.rollouts.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(Path(given), target, url, [int(one) for one in rest]))
