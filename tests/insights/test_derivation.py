"""The cases that users reported, and what no relabelling may change."""

import math
import sys
from array import array
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.insights.derivation import derive_insights
from reward_profiling.insights.schema import Insights, TaskInsight
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import UNKNOWN, YES, RolloutStatus
from reward_profiling.reporting.outcome import SUSPECT
from tests.insights.tables import Rollout, table_of

MASKED = Rollout(status=RolloutStatus.MASKED)
UNSCORED = Rollout(status=RolloutStatus.UNSCORED)
FAILED = Rollout(status=RolloutStatus.FAILED, failure="agent_run_error")
MISSING = Rollout(status=RolloutStatus.MISSING)

ROLLOUTS = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0]).map(lambda reward: Rollout(reward, tokens=10)),
    st.sampled_from([MASKED, UNSCORED, FAILED, MISSING]),
)
TASKS = st.lists(st.lists(ROLLOUTS, min_size=1, max_size=6), min_size=1, max_size=8)


def insights(
    *tasks: Sequence[Rollout | float],
    answers: list[int] | None = None,
    **options: object,
) -> Insights:
    chosen = ProfileOptions.made(options)
    given_answers = None if answers is None else array("q", answers)
    return derive_insights(table_of(tasks), chosen, given_answers)


@pytest.mark.parametrize("reward", [UNSCORED])
def test_a_reward_that_is_none_lowers_coverage_and_not_the_mean(
    reward: Rollout,
) -> None:
    found = insights([1.0, reward])

    assert (found.run.coverage.scored, found.run.coverage.unscored) == (1, 1)
    assert found.run.coverage.scored_share == 0.5
    assert (found.run.reward.macro_mean, found.run.reward.num_tasks) == (1.0, 1)
    assert found.run.reward.num_rollouts == 1


LARGE = st.sampled_from([1.7e308, -1.7e308, 1e308, 5e-324, sys.float_info.max])
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.lists(FINITE | LARGE, min_size=1, max_size=4), min_size=1))
def test_rewards_of_any_size_have_a_mean_and_no_sum_breaks(
    tasks: list[list[float]],
) -> None:
    reward = insights(*tasks).run.reward

    rewards = [reward for task in tasks for reward in task]
    assert reward.micro_mean is not None
    assert reward.macro_mean is not None
    bounds = min(rewards), max(rewards)
    for mean in (reward.micro_mean, reward.macro_mean):
        assert bounds[0] <= mean <= bounds[1] or mean == pytest.approx(bounds[0])


def test_masked_rollouts_are_counted_and_measure_nothing() -> None:
    found = insights([*[MASKED] * 9, 1.0])

    assert (found.run.reward.macro_mean, found.run.reward.num_rollouts) == (1.0, 1)
    assert (found.run.coverage.masked, found.run.coverage.scored_share) == (9, 0.1)
    assert [finding.name for finding in found.findings[:2]] == [
        "mostly_masked", "low_coverage",
    ]  # fmt: skip
    assert found.tasks[0].task_class == "undetermined"


def test_masked_rollouts_stay_out_of_a_tasks_spread() -> None:
    (task,) = insights([1.0, 0.0, MASKED, MASKED]).tasks

    assert (task.mean, task.scored, task.masked) == (0.5, 2, 2)
    assert task.std == pytest.approx(0.7071, abs=5e-5)


def test_an_environment_that_lost_most_rollouts_is_not_hidden_by_another() -> None:
    good = [[Rollout(float(r % 2), agent="a") for r in range(12)] for _ in range(8)]
    lost = [[Rollout(1.0, agent="b"), Rollout(status=RolloutStatus.MISSING, agent="b")],
            [Rollout(status=RolloutStatus.MISSING, agent="b")] * 2]  # fmt: skip

    found = insights(*good, *lost)

    assert found.run.coverage.scored_share == pytest.approx(0.97)
    a, b = found.agents
    assert (a.coverage.scored_share, b.coverage.scored_share) == (1.0, 0.25)
    assert [(f.name, f.agent) for f in found.findings] == [
        ("low_coverage", "b"), ("too_few_repeats", "b"),
    ]  # fmt: skip
    empty = found.tasks[-1]
    assert (empty.mean, empty.pass_rate, empty.task_class) == (
        None, None, "undetermined",
    )  # fmt: skip


def test_a_task_with_nothing_collected_is_listed_with_nulls() -> None:
    found = insights([0.0, 1.0, 1.0, MISSING], [MISSING] * 4)

    assert found.run.coverage.scored_share == 0.375
    some, none = found.tasks
    assert (some.planned, some.scored, some.missing) == (4, 3, 1)
    assert (none.planned, none.scored, none.mean, none.std) == (4, 0, None, None)
    assert none.rollouts is not None
    assert none.rollouts.state == ("missing",) * 4


def test_failures_have_the_other_denominator_beside_the_mean() -> None:
    found = insights([*[1.0] * 4, *[0.0] * 4, FAILED, FAILED])

    assert (found.run.reward.macro_mean, found.run.reward.num_rollouts) == (0.5, 8)
    assert found.run.reward.mean_failures_as_zero == 0.4
    assert not found.reading.failures_as_zero
    assert found.run.coverage.failures_by_class == {"agent_run_error": 2}


def test_two_mirrored_tasks_get_no_interval_and_a_rerun_error() -> None:
    reward = insights([1.0, 0.0], [0.0, 1.0]).run.reward

    assert (reward.standard_error, reward.interval) == (0.0, None)
    assert reward.caution is not None
    assert reward.rerun_standard_error == pytest.approx(0.3536, abs=5e-5)


def test_all_passes_and_none_leave_room_for_doubt() -> None:
    always, never = insights([1.0] * 8, [0.0] * 8).tasks

    assert always.interval is not None
    assert (always.interval.low, always.interval.high) == pytest.approx(
        (0.676, 1), abs=5e-4
    )
    assert never.interval is not None
    assert (never.interval.low, never.interval.high) == pytest.approx(
        (0, 0.324), abs=5e-4
    )
    assert never.upper_bound == pytest.approx(0.312, abs=5e-4)
    assert always.lower_bound == pytest.approx(0.688, abs=5e-4)
    assert (never.lower_bound, always.upper_bound) == (None, None)


def test_truncated_answers_are_told_apart() -> None:
    found = insights([
        Rollout(1.0, tokens=100), Rollout(1.0, tokens=200), Rollout(1.0, tokens=300),
        *[Rollout(0.0, tokens=t, truncated=YES) for t in (400.0, 500.0, 600.0)],
    ]).run.length  # fmt: skip

    assert found.correlation.pearson == pytest.approx(-0.8783, abs=5e-5)
    assert found.correlation.spearman == pytest.approx(-0.8783, abs=5e-5)
    assert (found.num_truncated, found.num_truncation_known) == (3, 6)
    assert (found.truncated.pass_rate, found.finished.pass_rate) == (0.0, 1.0)
    assert found.truncated.mean_tokens == 500


def test_empty_answers_are_separable() -> None:
    rows = [Rollout(0.0, empty=YES)] * 6 + [Rollout(1.0)] * 4

    found = insights(rows)

    assert (found.run.length.num_empty, found.run.length.num_empty_known) == (6, 10)
    assert found.run.length.answered.mean_reward == 1.0
    assert "empty_answers" in {finding.name for finding in found.findings}
    assert (
        "60 %" in next(f for f in found.findings if f.name == "empty_answers").sentence
    )


def test_replies_that_say_nothing_are_whole_where_others_say_they_were_cut() -> None:
    silent, cut = Rollout(1.0, truncated=UNKNOWN), Rollout(0.0, truncated=YES)
    other = Rollout(1.0, truncated=UNKNOWN, agent="other")
    table = table_of([[silent, cut, cut], [other]])

    found = derive_insights(table, ProfileOptions())

    agent, other_agent = (section.length for section in found.agents)
    assert (agent.num_truncated, agent.num_truncation_known) == (2, 3)
    assert (agent.finished.pass_rate, agent.finished.num_rollouts) == (1.0, 1)
    assert other_agent.num_truncation_known == 0
    assert list(table.truncated) == [UNKNOWN, YES, YES, UNKNOWN]


def test_empty_answers_can_be_left_out() -> None:
    rows = [Rollout(0.0, empty=YES)] * 6 + [Rollout(1.0), Rollout(0.0)] * 2

    found = insights(rows, rows[:6], leave_out_empty=True)

    assert (found.run.reward.macro_mean, found.run.reward.num_rollouts) == (0.5, 4)
    assert (found.run.coverage.masked, found.run.coverage.scored) == (12, 4)
    assert (found.run.length.num_empty, found.run.length.num_empty_known) == (12, 16)
    assert found.reading.leave_out_empty
    assert [task.task_class for task in found.tasks] == ["sometimes", "undetermined"]
    told = {finding.name: finding.sentence for finding in found.findings}
    assert "mostly_masked" not in told
    assert "12 masked or empty" in told["low_coverage"]


def test_tokens_that_are_not_known_are_no_zeros() -> None:
    length = insights([
        Rollout(1.0, tokens=50), Rollout(0.0), Rollout(0.0, truncated=UNKNOWN),
    ]).run.length  # fmt: skip

    assert (length.mean_tokens, length.num_with_tokens) == (50, 1)
    assert length.num_truncation_known == 2
    assert length.correlation.num_rollouts == 1


def test_equal_totals_of_different_components_are_told() -> None:
    def parts(*values: float) -> dict[str, float]:
        return dict(zip("abc", values, strict=True))

    found = insights([
        Rollout(2.0, components=parts(0, 1, 1)), Rollout(2.0, components=parts(1, 1, 0))
    ])  # fmt: skip

    signal = found.run.signal
    assert (signal.num_zero_signal, signal.num_signal_in_components_only) == (1, 1)
    told = {
        c.name: (c.mean, c.num_signal, c.num_signal_only_here)
        for c in signal.components
    }
    assert told == {"a": (0.5, 1, 1), "b": (1.0, 0, 0), "c": (0.5, 1, 1)}
    assert "signal_only_in_components" in {f.name for f in found.findings}


def test_numbers_that_name_tasks_stand_last_among_the_metrics() -> None:
    found = insights(*(
        [Rollout(0.0, metrics={"question_id": 100.0 + task, "turns": task % 2 + r})
         for r in range(2)]
        for task in range(4)
    ))  # fmt: skip

    assert [(m.name, m.is_identifier) for m in found.metrics] == [
        ("turns", False), ("question_id", True),
    ]  # fmt: skip
    assert [f.name for f in found.findings if f.agent is None] == [
        "metric_is_identifier"
    ]


@pytest.mark.parametrize(
    ("name", "by_task", "is_id"),
    [("question_id", [[7, 7], [8, 8]], True), ("task_idx", [[0], [1]], True),
     ("seed", [[1, 2], [1, 2]], True), ("seed", [[0.5, 0.5]], False),
     ("choice_index", [[0, 1], [1, 1]], False), ("turns", [[3, 3], [4, 4]], False)],
)  # fmt: skip
def test_a_column_whose_name_says_so_names_tasks_even_if_they_are_few(
    name: str, by_task: list[list[float]], *, is_id: bool
) -> None:
    found = insights(*([Rollout(0.0, metrics={name: v}) for v in t] for t in by_task))

    assert [metric.is_identifier for metric in found.metrics] == [is_id]


def test_a_difficulty_that_tasks_share_is_no_identifier() -> None:
    found = insights(*(
        [Rollout(0.0, metrics={"level": float(task % 3)})] * 2 for task in range(9)
    ))  # fmt: skip

    assert [(m.name, m.is_identifier) for m in found.metrics] == [("level", False)]


def test_a_task_of_two_agents_is_two_units() -> None:
    found = insights([Rollout(1.0, agent="b"), Rollout(0.0, agent="a")] * 2)

    assert [(t.task_index, t.agent, t.passed) for t in found.tasks] == [
        (0, "a", 0), (0, "b", 2),
    ]  # fmt: skip
    assert found.run.coverage.num_tasks == 2
    assert found.tasks[0].rollouts is not None
    assert found.tasks[0].rollouts.rollout_index == (1, 3)


def test_the_majority_of_answers_is_looked_at_when_they_are_known() -> None:
    rewards: list[Rollout | float] = [1.0, 1.0, 0.0, 0.0]

    found = insights(rewards, answers=[7, 7, 8, 0], answer_field="extracted_answer")

    majority = found.run.passing.majority
    assert majority is not None
    assert (majority.pass_rate, majority.num_rollouts) == (1.0, 3)
    assert insights(rewards).run.passing.majority is None


def test_the_most_informative_task_ranks_first() -> None:
    found = insights([0.0] * 4, [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0])

    assert [task.rank for task in found.tasks] == [3, 2, 1, None]


def test_a_run_without_a_reward_says_so_and_nothing_else() -> None:
    found = insights([FAILED, MISSING])

    assert found.run.reward.macro_mean is None
    assert found.run.passing.curve == ()
    assert [f.name for f in found.findings] == ["nothing_scored"]


def test_an_agent_that_was_not_asked_yet_says_nothing_of_its_verifier() -> None:
    found = insights([MISSING] * 4, [MISSING] * 4)

    (finding,) = found.findings
    assert (finding.name, finding.severity) == ("low_coverage", "critical")
    assert finding.name not in SUSPECT
    assert "0 of 8 planned rollouts (0 %) have a reward: 8 missing" in finding.sentence


def test_an_empty_plan_is_no_fault() -> None:
    found = derive_insights(table_of([]), ProfileOptions())

    assert (found.run.coverage.planned, found.run.coverage.scored_share) == (0, None)
    assert (found.tasks, found.findings) == ((), ())


def test_insights_survive_being_written_and_read() -> None:
    found = insights([1.0, 0.0, FAILED], [Rollout(0.5, tokens=3, answer=4)])

    assert Insights.model_validate_json(found.model_dump_json()) == found


def comparable(task: TaskInsight) -> dict[str, object]:
    return task.model_dump(exclude={"task_index", "rank"})


@given(TASKS, st.integers(0, 2**32))
def test_the_names_of_tasks_change_no_number(
    tasks: list[list[Rollout]], seed: int
) -> None:
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)  # noqa: S311 - repeatable on purpose

    one, other = insights(*tasks), insights(*shuffled)

    assert one.run == other.run
    assert sorted(map(str, map(comparable, one.tasks))) == sorted(
        map(str, map(comparable, other.tasks))
    )


@given(TASKS, st.integers(-8, 8))
def test_scaling_rewards_and_threshold_scales_means_and_leaves_rates(
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
    text = found.model_dump_json()
    assert "NaN" not in text
    assert "Infinity" not in text


@given(TASKS)
def test_the_curve_begins_at_the_pass_rate(tasks: list[list[Rollout]]) -> None:
    passing = insights(*tasks).run.passing

    if passing.pass_rate is not None:
        assert passing.curve[0].pass_at_k == pytest.approx(passing.pass_rate)
        assert passing.curve[0].num_tasks == passing.num_tasks
        assert math.isfinite(passing.curve[0].pass_at_k)
