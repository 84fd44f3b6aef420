import json
from dataclasses import replace

import pytest

from reward_profiling.profiling.finding import Finding, Severity
from reward_profiling.profiling.options import Strictness
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting import outcome

WHOLE = RunSummary(
    output="runs/r.jsonl", planned=8, collected=8, scored=8, unscored=0, masked=0,
    failed=0, missing=0, agents=(), mean_reward=0.5, num_scored_tasks=4,
)  # fmt: skip
PARTIAL = replace(WHOLE, collected=6, scored=6, failed=2)


def finding(name: str, severity: Severity, agent: str | None = None) -> Finding:
    return Finding(
        name=name, severity=severity, agent=agent, sentence=f"{name} was seen",
        evidence={}, remedy="look",
    )  # fmt: skip


def with_findings(*found: Finding) -> RunSummary:
    return replace(WHOLE, findings=found)


def test_a_state_says_what_is_missing() -> None:
    assert outcome.state_message(WHOLE) == (
        "8 of 8 rollouts collected; mean reward 0.500 (n=4 tasks)"
    )
    assert outcome.state_message(PARTIAL).startswith(
        "6 of 8 rollouts collected: 2 failed;"
    )


def test_a_state_leaves_notes_out() -> None:
    summary = with_findings(
        finding("constant_reward", "critical", "math"), finding("little", "note")
    )

    said = outcome.state_message(summary)

    assert said.endswith("; needs attention: math: constant_reward was seen")


@pytest.mark.parametrize(("strict", "count"), [("critical", 1), ("warning", 2)])
def test_strictness_includes_what_is_worse(strict: Strictness, count: int) -> None:
    severities: tuple[Severity, ...] = ("critical", "warning", "note")
    summary = with_findings(*(finding(s, s) for s in severities))

    assert len(outcome.as_bad_as(strict, summary)) == count


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        (WHOLE, [outcome.COMPLETED]),
        (PARTIAL, [outcome.PARTIAL]),
        (
            with_findings(finding(outcome.REGRESSION, "critical")),
            [outcome.COMPLETED, outcome.REGRESSED],
        ),
        (
            with_findings(finding("constant_reward", "warning")),
            [outcome.COMPLETED, outcome.VERIFIER_SUSPECT],
        ),
        (with_findings(finding("constant_reward", "note")), [outcome.COMPLETED]),
        (with_findings(finding("length_bias", "warning")), [outcome.COMPLETED]),
    ],
)
def test_an_end_is_announced_by_its_result(
    summary: RunSummary, names: list[str]
) -> None:
    assert outcome.announcements(summary) == names
    assert set(names) <= set(outcome.EVENTS)


def test_bad_findings_name_their_option() -> None:
    summary = with_findings(
        finding("constant_reward", "critical", "math"), finding("little", "warning")
    )

    assert outcome.too_bad("critical", summary) == (
        "--strict critical: math: constant_reward was seen"
    )
    assert outcome.too_bad("warning", summary) == (
        "--strict warning: math: constant_reward was seen; little was seen"
    )
    assert outcome.too_bad(None, summary) is None
    assert outcome.too_bad("critical", with_findings(finding("x", "note"))) is None


def test_an_announcement_has_the_numbers() -> None:
    found = replace(
        finding(outcome.REGRESSION, "critical"),
        evidence={"difference": -0.25, "low": None, "tasks": 24},
    )

    told = outcome.announcement(with_findings(found))["findings"]

    assert isinstance(told, list)
    assert told[0]["evidence"] == {"difference": -0.25, "low": None, "tasks": 24}


def test_an_announcement_stays_small() -> None:
    long = Finding(
        name="x", severity="warning", agent="a" * 200, sentence="s" * 100_000,
        evidence={"columns": "c" * 100_000}, remedy="r",
    )  # fmt: skip
    summary = with_findings(*[long] * 3_000)

    assert len(json.dumps(outcome.announcement(summary))) < 30_000
    assert len(outcome.state_message(summary)) <= 4_000
