# %% [markdown]
# # From tasks to a training set, in a notebook
#
# Cells begin with `# %%`: editors and Jupyter run them one by one, and so does
# `python docs/notebook.py`. In Jupyter write `await collected()` for `asyncio.run`.

# %%
import asyncio
import tempfile
from pathlib import Path

from reward_profiling import (
    EMBEDDED_TASKS,
    CollectionSummary,
    CollectOptions,
    PlanOptions,
    SelectOptions,
    ServerOptions,
    collect,
    compare,
    open_output,
    plan,
    profile,
    report,
    select,
    serving,
)

folder = Path(tempfile.mkdtemp())
output = folder / "rollouts.jsonl"

# %% Plan: every task eight times
planned = plan(EMBEDDED_TASKS, output, PlanOptions(num_repeats=8))
print(f"{planned.num_rollouts} rollouts of {planned.num_tasks} tasks")


# %% Collect: from running servers by their head URL, or from servers started here
async def collected() -> CollectionSummary:
    async with serving(ServerOptions(demo=True), output) as head_url:
        return await collect(output, head_url, CollectOptions(concurrency=32))


done = asyncio.run(collected())
print(f"{done.collected} of {done.planned} rollouts collected")

# %% Profile: Gym's three files, a table, and what the rewards say
summary = profile(output)
for agent in summary.agents:
    print(f"{agent.agent}: mean reward {agent.mean_reward:.3f}, n={agent.num_tasks}")
for finding in summary.findings:
    print(f"{finding.severity}: {finding.sentence}")

# %% Look: the table is Arrow's; polars, pandas, DuckDB and PyArrow take it as it is
run = open_output(output)
table = run.rollouts()
print(f"{table.num_rows} rows; columns: {', '.join(table.column_names[:8])} …")
reward = run.insights.run.reward
print(f"mean reward {reward.macro_mean:.3f}, n={reward.num_tasks}: {reward.interval}")
hard = [task for task in run.tasks if task.scored and not task.passed]
print(f"{len(hard)} of {len(run.tasks)} tasks never passed")

# %% Choose: the tasks that pass sometimes
rule = SelectOptions(open_ends=True)
kept = select(EMBEDDED_TASKS, output, rule)
print(f"{kept.kept} of {kept.num_rows} rows kept")

# %% Compare: a run with itself differs by nothing
difference = compare(output, output).overall
print(f"difference {difference.difference:+.3f}, n={difference.num_tasks} tasks")

# %% Report: one page to look at
print(report(output).path.name)
