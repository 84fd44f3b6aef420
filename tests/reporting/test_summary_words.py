from dataclasses import replace
from typing import Any

import pytest

from reward_profiling.collecting.progress import Progress
from reward_profiling.planning.plan_summary import PlanSummary
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary
from reward_profiling.profiling.summary.summaries import add_up
from reward_profiling.reporting import summary_words

AGENT = AgentSummary(
    agent="math_agent", num_tasks=3, planned=12, collected=12, scored=12, unscored=0,
    masked=0, failed=0, missing=0, mean_reward=0.5, standard_error=0.125,
    never_pass=1, sometimes_pass=1, always_pass=1,
)  # fmt: skip


def run(*agents: AgentSummary, warnings: tuple[str, ...] = ()) -> RunSummary:
    return add_up("out/r.jsonl", agents, ["out/r.jsonl"], warnings)


def agent(**changes: Any) -> AgentSummary:  # noqa: ANN401 - of any field
    return replace(AGENT, **changes)


@pytest.mark.parametrize(
    ("num_new", "said"),
    [
        (8, "8 rollouts of 2 tasks planned"),
        (4, "8 rollouts of 2 tasks planned, 4 of them new"),
        (0, "8 rollouts of 2 tasks planned, 0 of them new"),
    ],
)
def test_a_plan_says_what_is_new_in_it(num_new: int, said: str) -> None:
    plan = PlanSummary(path="p", num_tasks=2, num_rollouts=8, num_new=num_new)

    assert summary_words.planned(plan) == said


def test_a_headline_names_everything_missing() -> None:
    partial = agent(collected=7, failed=3, missing=2, masked=1, unscored=4, scored=2)

    assert summary_words.headline(run(AGENT)) == (
        "12 of 12 rollouts collected; mean reward 0.500 (n=3 tasks)"
    )
    assert summary_words.headline(run(partial)) == (
        "7 of 12 rollouts collected: 3 failed, 2 missing, 1 masked,"
        " 4 without a usable reward; mean reward 0.500 (n=3 tasks)"
    )


@pytest.mark.parametrize(
    ("mean", "error", "said"),
    [
        (None, None, "unknown"),
        (0.5, None, "0.500"),
        (0.5, 0.0, "0.500"),
        (0.5, 0.125, "0.500 ± 0.125"),
        (-1.0, 2.0, "-1 ± 2"),
    ],
)
def test_a_mean_has_an_error_or_says_why(
    mean: float | None, error: float | None, said: str
) -> None:
    one = agent(mean_reward=mean, standard_error=error)

    assert summary_words.mean_with_error(one) == said


def test_a_headline_says_what_kind_is_missing() -> None:
    lacking = agent(
        collected=8, failed=4, unscored=3, scored=5,
        failed_classes={"timeout": 1, "judge_failed": 3},
        unscored_reasons={"null": 2, "text": 1},
    )  # fmt: skip

    assert summary_words.headline(run(lacking)) == (
        "8 of 12 rollouts collected: 4 failed (3 judge_failed, 1 timeout),"
        " 3 without a usable reward (2 null, 1 text); mean reward 0.500 (n=3 tasks)"
    )


def test_an_agents_row_fills_every_column() -> None:
    cells = dict(
        zip(summary_words.COLUMNS, summary_words.agent_cells(AGENT), strict=True)
    )

    assert cells == {
        "agent": "math_agent", "rollouts": "12/12", "scored": "12",
        "mean reward": "0.500 ± 0.125", "tasks": "3", "never": "1", "some": "1",
        "always": "1",
    }  # fmt: skip


def test_unrewarded_tasks_are_shown_too() -> None:
    assert summary_words.agent_cells(agent(num_tasks=5))[4] == "3 of 5"


def test_a_progress_line_has_no_empty_parts() -> None:
    progress = Progress(planned=9)

    assert summary_words.progress_line(progress, 1.0) == "0/9 done, no reward yet"


def test_a_progress_line_has_its_numbers() -> None:
    progress = Progress(planned=9, found=2, given_up=1, retries=3)
    for reward in (0.0, 1.0):
        progress.add_record(reward, agent="a", masked=False, now=1.0)
    progress.add_failure("judge_failed", agent="a", now=2.0)

    line = summary_words.progress_line(progress, 4.0)

    assert line.startswith("6/9 done, mean reward 0.500 ± 0.500 (n=2)")
    for part in ("2 from earlier runs", "1 judge_failed", "1 given up", "0.75/s"):
        assert part in line


def test_a_mean_so_far_has_its_n() -> None:
    progress = Progress(planned=1)
    progress.add_record(0.25, agent="a", masked=False, now=1.0)

    assert summary_words.mean_so_far(progress) == "mean reward 0.250 (n=1)"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (61, "1:01"),
        (3599.7, "1:00:00"), (3661, "1:01:01"), (360_000, "100:00:00"),
    ],
)  # fmt: skip
def test_a_duration_reads_as_a_clock(seconds: float, said: str) -> None:
    assert summary_words.duration(seconds) == said


def test_findings_say_if_no_task_can_teach() -> None:
    never = agent(agent="n", never_pass=3, sometimes_pass=0, always_pass=0)
    always = agent(agent="a", never_pass=0, sometimes_pass=0, always_pass=3)
    nothing = agent(agent="x", never_pass=0, sometimes_pass=0, always_pass=0)

    assert summary_words.notices(run(AGENT, never, always, nothing)) == [
        "n: all 3 tasks never pass, so passing alone cannot teach",
        "a: all 3 tasks always pass, so passing alone cannot teach",
    ]


def test_findings_end_with_the_warnings() -> None:
    found = summary_words.notices(run(agent(collected=5), warnings=("look here",)))

    assert found == ["math_agent: 5 of 12 rollouts collected", "look here"]


def test_findings_name_uncounted_agents() -> None:
    found = summary_words.notices(run(AGENT, agent(agent="m", masked=9, scored=3)))

    assert found == ["m: 3 of 12 records count: 9 masked"]
