"""A value reads the same wherever a person meets it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from reward_profiling.cli.commands.inspection import task_cells
from reward_profiling.insights.document import Insights
from reward_profiling.numerics.figures import figure, percent
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary
from reward_profiling.reporting.insight_words import insights_in_words
from reward_profiling.reporting.inspection import NamedTask
from reward_profiling.reporting.overview import TaskGlance
from reward_profiling.reporting.page.contents import agent_names, page
from reward_profiling.reporting.run_report import RunFacts, agent_rows
from reward_profiling.reporting.summary_words import agent_cells
from tests.reporting.samples import a_task, insights_of

SCRIPT = Path(__file__).parents[2] / "reward_profiling/reporting/template/figures.js"
VALUES = [
    0.0, 1.0, 1 / 16, 1 / 3, -0.25, 0.0002, 9.99961, 12.345, 1234.56, 123456.7,
    -1.5e-7, 3e22,
]  # fmt: skip
SHARES = [0.0, 1.0, 0.5, 0.625, 0.0625, 1 / 3, 0.996, 0.9996, 0.0004, 0.29]

PASSED, ROLLOUTS = 249, 250
RATE = PASSED / ROLLOUTS


@pytest.fixture(scope="module")
def insights() -> Insights:
    return insights_of([a_task(0, "a", [1.0] * PASSED + [0.0])])


def _summary() -> RunSummary:
    agent = AgentSummary(
        agent="a", num_tasks=1, planned=ROLLOUTS, collected=ROLLOUTS, scored=ROLLOUTS,
        unscored=0, masked=0, failed=0, missing=0, mean_reward=RATE,
        standard_error=None, never_pass=0, sometimes_pass=1, always_pass=0,
    )  # fmt: skip
    return RunSummary(
        output="r.jsonl", planned=ROLLOUTS, collected=ROLLOUTS, scored=ROLLOUTS,
        unscored=0, masked=0, failed=0, missing=0, agents=(agent,), mean_reward=RATE,
        num_scored_tasks=1, files=(),
    )  # fmt: skip


def test_a_mean_and_a_share_read_the_same_in_all_four_places(
    insights: Insights,
) -> None:
    mean, rate = "0.996", "99.6 %"
    terminal = dict(insights_in_words(insights))
    report = {number.label: number.value for number in
              page(insights, agent_names(insights)).key_numbers}  # fmt: skip
    summary = _summary()
    facts = RunFacts(summary, insights, (), (), ".", "f.jsonl", "t.jsonl")
    row = agent_rows(facts)[0]
    glance = TaskGlance(
        task_index=0, first_row=0, scored=ROLLOUTS, planned=ROLLOUTS, mean_reward=RATE,
        pass_rate=RATE,
    )  # fmt: skip
    inspected = task_cells(NamedTask(task=glance, label=""))

    assert terminal["mean reward"].startswith(f"{mean} (n=")
    assert terminal["passing"].startswith(f"{rate} reach 1 (n=")
    assert agent_cells(summary.agents[0])[3] == mean
    assert inspected[2:4] == (mean, rate)
    assert report["Mean reward"] == mean
    assert report["Pass rate at 1"].replace("\u00a0", " ") == rate
    assert row["mean reward"].startswith(f"{mean} (n=")
    assert row["pass rate"].startswith(f"{rate} (n=")


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script")
def test_the_pages_script_writes_numbers_as_python_does() -> None:
    asked = json.dumps([VALUES, SHARES])
    script = SCRIPT.read_text("utf-8") + (
        f"const [values, shares] = {asked};"
        "console.log(JSON.stringify([values.map(figures.number),"
        " shares.map(figures.percent)]));"
    )
    command = ["node", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    shown, shares = json.loads(done.stdout)
    assert shown == [figure(value).replace("-", "\u2212") for value in VALUES]
    assert shares == [percent(share).replace(" %", "\u00a0%") for share in SHARES]
