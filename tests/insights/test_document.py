"""The insights of a whole run, and what no relabelling may change."""

import math
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.insights.document import derive_insights
from reward_profiling.insights.task_insights import TaskInsight
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.reporting.outcome import SUSPECT
from tests.insights.tables import (
    FAILED,
    MISSING,
    TASKS,
    Rollout,
    insights,
    table_of,
)


def test_known_answers_have_a_majority() -> None:
    rewards: list[Rollout | float] = [1.0, 1.0, 0.0, 0.0]

    found = insights(rewards, answers=[7, 7, 8, 0], answer_field="extracted_answer")

    majority = found.run.passing.majority
    assert majority is not None
    assert (majority.pass_rate, majority.num_rollouts) == (1.0, 3)
    assert insights(rewards).run.passing.majority is None


def test_a_rewardless_run_says_only_that() -> None:
    found = insights([FAILED, MISSING])

    assert found.run.reward.macro_mean is None
    assert found.run.passing.curve == ()
    assert [f.name for f in found.findings] == ["nothing_scored"]


def test_an_unasked_agent_is_no_suspect() -> None:
    found = insights([MISSING] * 4, [MISSING] * 4)

    (finding,) = found.findings
    assert (finding.name, finding.severity) == ("low_coverage", "critical")
    assert finding.name not in SUSPECT
    assert "0 of 8 planned rollouts (0 %) have a reward: 8 missing" in finding.sentence


def test_an_empty_plan_is_no_fault() -> None:
    found = derive_insights(table_of([]), ProfileOptions())

    assert (found.run.coverage.planned, found.run.coverage.scored_share) == (0, None)
    assert (found.tasks, found.findings) == ((), ())


def comparable(task: TaskInsight) -> dict[str, object]:
    named = msgspec.structs.asdict(task)
    return {name: named[name] for name in named.keys() - {"task_index", "rank"}}


@given(TASKS, st.integers(0, 2**32))
def test_task_names_change_no_number(tasks: list[list[Rollout]], seed: int) -> None:
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)  # noqa: S311 - repeatable on purpose

    one, other = insights(*tasks), insights(*shuffled)

    assert one.run == other.run
    assert sorted(map(str, map(comparable, one.tasks))) == sorted(
        map(str, map(comparable, other.tasks))
    )


@given(TASKS, st.integers(-8, 8))
def test_scaling_rewards_scales_only_means(
    tasks: list[list[Rollout]], power: int
) -> None:
    factor = 2.0**power
    scaled = [
        [
            Rollout(r.reward * factor, r.status, r.tokens, failure=r.failure)
            for r in rows
        ]
        for rows in tasks
    ]

    one = insights(*tasks).run
    other = insights(*scaled, pass_threshold=factor).run

    assert (other.passing, other.signal) == (one.passing, one.signal)
    assert other.coverage == one.coverage
    if one.reward.macro_mean is not None:
        assert other.reward.macro_mean == pytest.approx(one.reward.macro_mean * factor)
        assert other.length.correlation == one.length.correlation


def numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, int | float):
        yield value


@given(TASKS)
def test_counts_add_up_and_rates_are_rates(tasks: list[list[Rollout]]) -> None:
    found = insights(*tasks)

    for section in (found.run, *found.agents):
        told, signal = section.coverage, section.signal
        assert told.planned == (
            told.scored + told.unscored + told.masked + told.failed + told.missing
        )
        classes = (signal.never, signal.sometimes, signal.always, signal.undetermined)
        assert sum(classes) == told.num_tasks
        for point in section.passing.curve:
            assert 0 <= point.pass_hat_k <= point.pass_at_k <= 1
    for task in found.tasks:
        if task.pass_rate is not None and task.interval is not None:
            low, high = task.interval.low, task.interval.high
            assert 0 <= low <= task.pass_rate <= high <= 1
    assert all(map(math.isfinite, numbers_in(msgspec.to_builtins(found))))


@given(TASKS)
def test_the_curve_begins_at_the_pass_rate(tasks: list[list[Rollout]]) -> None:
    passing = insights(*tasks).run.passing

    if passing.pass_rate is not None:
        assert passing.curve[0].pass_at_k == pytest.approx(passing.pass_rate)
        assert passing.curve[0].num_tasks == passing.num_tasks
        assert math.isfinite(passing.curve[0].pass_at_k)
