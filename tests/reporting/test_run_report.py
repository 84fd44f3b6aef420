import json
from dataclasses import replace
from typing import Any

import pytest

from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.summary.run_summary import AgentSummary, RunSummary
from reward_profiling.reporting import run_report
from reward_profiling.reporting.run_report import FailedRollout, RunFacts, SlowRollout

AGENT = AgentSummary(
    agent="math_agent", num_tasks=3, planned=12, collected=12, scored=12, unscored=0,
    masked=0, failed=0, missing=0, mean_reward=0.5, standard_error=0.125,
    never_pass=1, sometimes_pass=1, always_pass=1,
)  # fmt: skip
FOUND = Finding(
    name="constant_reward", severity="critical", agent="math_agent",
    sentence="every reward is 0 | <b>", evidence={}, remedy="look at `verify`",
)  # fmt: skip


def facts(
    *agents: AgentSummary,
    failed: tuple[FailedRollout, ...] = (),
    slowest: tuple[SlowRollout, ...] = (),
    **changes: Any,  # noqa: ANN401 - of any field
) -> RunFacts:
    summary = RunSummary(
        output="runs/r.jsonl", planned=12, collected=12, scored=12, unscored=0,
        masked=0, failed=0, missing=0, agents=agents, mean_reward=0.5,
        num_scored_tasks=3, files=("runs/r_agent_metrics.json",),
    )  # fmt: skip
    return RunFacts(
        replace(summary, **changes), None, failed, slowest,
        "/data/runs", "r_failures.jsonl", "r_timings.jsonl",
    )  # fmt: skip


def test_findings_numbers_and_files_in_order() -> None:
    text = run_report.report(facts(AGENT, findings=(FOUND,)))

    places = [
        text.index(part)
        for part in (
            "### 12 of 12 rollouts collected",
            "**critical** `math_agent`: every reward", "*look at `verify`*",
            "| math_agent | 12 | 12 | 0.500 ± 0.125 (n=3 ",
            "In `/data/runs`:", "- `r.jsonl`", "- `r_agent_metrics.json`",
        )
    ]  # fmt: skip
    assert places == sorted(places)


def test_markup_is_shown_as_text() -> None:
    text = run_report.report(facts(AGENT, findings=(FOUND,)))

    assert "every reward is 0 \\| \\<b\\>" in text


def test_the_table_leaves_out_empty_columns() -> None:
    other = replace(AGENT, agent="other", scored=9, missing=3)

    text = run_report.report(facts(AGENT, other))

    assert "| agent | planned | scored | missing | mean reward |" in text
    assert "| other | 12 | 9 | 3 | 0.500 ± 0.125 (n=3 tasks) |" in text
    assert {"failed", "missing", "masked", "unscored"} <= set(
        run_report.agent_rows(facts(AGENT))[0]
    )


@pytest.mark.parametrize(
    ("remedy", "shown"),
    [
        ("see `a_b` and *c*", "*see `a_b` and \\*c\\**"),
        ("one ` alone", "*one \\` alone*"),
    ],
)
def test_backticks_in_a_remedy_are_code(remedy: str, shown: str) -> None:
    found = replace(FOUND, remedy=remedy)

    assert shown in run_report.report(facts(AGENT, findings=(found,)))


def test_unknown_is_a_word_and_never_zero() -> None:
    nothing = replace(
        AGENT, scored=0, mean_reward=None, standard_error=None,
        never_pass=0, sometimes_pass=0, always_pass=0,
    )  # fmt: skip

    (row,) = run_report.agent_rows(facts(nothing))

    assert row["mean reward"] == "unknown (n=0 tasks)"
    assert (row["pass rate"], row["tasks with signal"]) == ("unknown", "unknown")


def test_failed_and_slow_rollouts_are_listed() -> None:
    failed = tuple(
        FailedRollout(task, 0, "math_agent", "agent_run_error", "no\nanswer" * 100)
        for task in range(200)
    )
    slow = (SlowRollout(7.25, 3, 1),)
    shown = facts(AGENT, failed=failed, slowest=slow)._replace(
        summary=replace(facts(AGENT).summary, failed=5_000)
    )

    text = run_report.report(shown)

    rows = run_report.failed_rows(shown)
    assert len(rows) == 200
    assert run_report.failed_caption(shown, len(rows)) == (
        "5000 rollouts failed, 200 of them shown; every attempt is a line of"
        " r_failures.jsonl"
    )
    assert "| 9 | 0 | math_agent | agent_run_error | no answer" in text
    assert "| 10 | 0 | math" not in text
    assert "| 7.25 | 3 | 1 |" in text
    assert "all are in r_timings.jsonl" in text


@pytest.mark.parametrize("length", [20, 5_000])
def test_nothing_exceeds_prefects_limit(length: int) -> None:
    agents = [replace(AGENT, agent="a" * length) for _ in range(3_000)]
    found = replace(FOUND, sentence="s" * 100_000)
    failed = (FailedRollout(0, 0, "a" * length, "b" * length, "c" * 9_000),) * 200
    large = facts(*agents, failed=failed, findings=(found,) * 400)

    tables = [run_report.agent_rows(large), run_report.failed_rows(large)]

    for shown in (*map(json.dumps, tables), json.dumps(run_report.report(large))):
        assert len(shown) < 512_000
