"""A run by the functions that its steps call, without Prefect, and what it shows.

    python benchmarks/plain_run.py INPUT OUTPUT HEAD_URL IN_FLIGHT REPEATS

What `orchestration.py` compares a flow with. A terminal is told the same.
"""

import asyncio
import sys
from pathlib import Path

from reward_profiling.cli.summary_view import show_summary
from reward_profiling.cli.terminal.live import Live
from reward_profiling.collecting.aggregation.aggregate_metrics import aggregate
from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.insights_run import add_insights
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.profile_run import profile_output
from reward_profiling.reporting.report_run import add_report
from reward_profiling.reporting.run_lists import read_run_facts
from reward_profiling.reporting.run_report import report
from reward_profiling.servers.readiness import read_servers
from reward_profiling.stop_scope import StopScope


async def run(source: Path, files: RunFiles, head: str, numbers: list[int]) -> None:
    """Plan, collect, aggregate and profile."""
    in_flight, repeats = numbers
    live = Live()
    known = await read_servers(head)
    checked = check_input(source, PlanOptions(num_repeats=repeats))
    materialize(checked, files, known.agents_of, known.attributed_agents)
    options = CollectOptions(concurrency=in_flight)
    shard = open_shard(files, 0, 1, options)
    await collect_shard(shard, known, options, StopScope(), live.observe)
    await aggregate(files, known, AggregateOptions())
    summary = profile_output(files, ProfileOptions())
    summary = add_report(add_insights(summary, files, ProfileOptions()), files)
    report(read_run_facts(summary, files))
    show_summary(summary)


if __name__ == "__main__":
    given, output, url, *rest = sys.argv[1:]
    target = RunFiles(Path(output))
    target.rollouts.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(Path(given), target, url, [int(one) for one in rest]))
