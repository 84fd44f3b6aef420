"""Each finding on a small run that shows it, and on its neighbour that does not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from reward_profiling.insights.checks.check_list import NAMES
from reward_profiling.insights.document import derive_insights
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import UNKNOWN, YES, RolloutStatus
from tests.insights.tables import Rollout, table_of

Tasks = list[list[Rollout]]
FAILED = Rollout(status=RolloutStatus.FAILED, failure="environment_server_failed")
MISSING = Rollout(status=RolloutStatus.MISSING)


def found_in(tasks: Tasks, **options: object) -> dict[str, Finding]:
    chosen = ProfileOptions.made(options)
    return {f.name: f for f in derive_insights(table_of(tasks), chosen).findings}


def mixed(num_tasks: int = 6, repeats: int = 4) -> Tasks:
    """Return a healthy run: every answer its own, half of them pass."""
    return [
        [
            Rollout(float(r % 2), tokens=100.0, answer=1 + task * repeats + r)
            for r in range(repeats)
        ]
        for task in range(num_tasks)
    ]


def changed(tasks: Tasks, change: Callable[[int, int, Rollout], Rollout]) -> Tasks:
    return [
        [change(task, r, one) for r, one in enumerate(rollouts)]
        for task, rollouts in enumerate(tasks)
    ]


def test_a_healthy_run_has_no_finding() -> None:
    assert found_in(mixed()) == {}


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, -3.0])
def test_one_reward_is_a_constant_verifier(value: float) -> None:
    found = found_in(
        changed(mixed(), lambda _t, _r, one: Rollout(value, answer=one.answer))
    )

    assert list(found) == ["constant_reward"]
    assert found["constant_reward"].severity == "critical"
    assert found["constant_reward"].evidence == {
        "rollouts": 24, "tasks": 6, "value": value,
    }  # fmt: skip


@pytest.mark.parametrize(("tasks", "severity"), [(8, "warning"), (20, "critical")])
def test_a_reward_by_task_ignores_the_answer(tasks: int, severity: str) -> None:
    found = found_in(
        changed(
            mixed(tasks), lambda t, _r, one: Rollout(float(t % 2), answer=one.answer)
        )
    )

    assert set(found) == {"reward_ignores_answer"}
    assert found["reward_ignores_answer"].severity == severity
    assert f"all {tasks} tasks" in found["reward_ignores_answer"].sentence


def test_one_honest_task_clears_the_verifier() -> None:
    tasks = changed(
        mixed(20), lambda t, _r, one: Rollout(float(t % 2), answer=one.answer)
    )
    tasks[0][0] = Rollout(1.0, answer=999)

    assert "reward_ignores_answer" not in found_in(tasks)


def test_cached_answers_are_no_repeats() -> None:
    found = found_in(
        changed(mixed(), lambda t, _r, _: Rollout(float(t % 2), answer=t + 1))
    )

    assert set(found) == {"repeats_identical"}
    assert found["repeats_identical"].severity == "critical"


def test_uneven_reward_of_an_answer_is_noise() -> None:
    found = found_in(
        changed(mixed(), lambda _t, r, _: Rollout(float(r % 2), answer=1 + r // 2))
    )

    assert set(found) == {"answer_scored_differently"}
    assert found["answer_scored_differently"].evidence == {
        "answers_given_again": 12, "rewarded_differently": 12,
    }  # fmt: skip


def test_answers_of_thinking_alone_are_counted() -> None:
    tasks = mixed()
    tasks[2][0] = Rollout(0.0, empty=YES, only_thought=YES)
    tasks[3][0] = Rollout(0.0, empty=YES)

    found = found_in(tasks)["empty_answers"]

    assert found.evidence["empty"] == 2
    assert found.evidence["only_thought"] == 1
    assert "1 of them hold thinking and nothing after it" in found.sentence


def test_an_empty_answer_must_not_pass() -> None:
    tasks = mixed()
    tasks[2][1] = Rollout(1.0, empty=YES)

    found = found_in(tasks)

    assert found["empty_answers_rewarded"].severity == "critical"
    assert found["empty_answers_rewarded"].evidence == {"empty": 1, "passed": 1}
    assert found["empty_answers"].severity == "note"


def test_a_midway_death_is_found_in_any_order() -> None:
    by_task = changed(mixed(), lambda t, _r, one: FAILED if t >= 3 else one)
    by_repeat = changed(mixed(8, 6), lambda _t, r, one: FAILED if r >= 3 else one)

    for tasks, before in ((by_task, 12), (by_repeat, 24)):
        found = found_in(tasks)
        assert found["environment_died"].severity == "critical"
        assert found["environment_died"].evidence["before"] == before
        assert "environment_server_failed" in found["environment_died"].sentence


def test_scattered_failures_are_no_death() -> None:
    found = found_in(changed(mixed(), lambda _t, r, one: FAILED if r == 1 else one))

    assert set(found) == {"low_coverage"} | (set(found) & {"never_passes"})
    assert "6 failed (environment_server_failed)" in found["low_coverage"].sentence


def test_tasks_beyond_the_context_are_counted() -> None:
    long = Rollout(status=RolloutStatus.FAILED, failure="context_length_exceeded")
    found = found_in(changed(mixed(30), lambda t, _r, one: long if t < 2 else one))

    assert found["context_exceeded"].severity == "note"
    assert found["context_exceeded"].evidence == {
        "rollouts": 8, "tasks": 2, "planned_tasks": 30,
    }  # fmt: skip
    assert "8 rollouts of 2 of 30 tasks (6.7 %)" in found["context_exceeded"].sentence
    many = found_in(changed(mixed(), lambda t, r, one: long if t + r < 1 else one))
    assert many["context_exceeded"].severity == "warning"
    assert many["context_exceeded"].sentence.startswith("1 rollout of 1 of 6 tasks")


def test_errors_beside_a_reward_are_counted() -> None:
    tasks = changed(
        mixed(10, 4),
        lambda t, r, one: (
            Rollout(0.0, has_error=YES, answer=99) if (t, r) == (0, 1) else one
        ),
    )

    found = found_in(tasks)["scored_errors"]

    assert found.severity == "warning"
    assert found.evidence["with_error"] == 1
    assert found.evidence["scored"] == 40
    assert found.evidence["mean_without"] == pytest.approx((1 / 3 + 9 * 0.5) / 10)
    assert "without them the mean is 0.483 (n=10 tasks)" in found.sentence
    every = found_in(changed(mixed(), lambda *_: Rollout(0.0, has_error=YES)))
    assert "none is left without them" in every["scored_errors"].sentence
    assert every["scored_errors"].severity == "critical"
    columns = changed(mixed(), lambda _t, _r, one: replace(one, has_error=YES))
    assert found_in(columns)["scored_errors"].severity == "warning"


def test_an_early_stop_is_no_death() -> None:
    found = found_in(changed(mixed(), lambda t, _r, one: MISSING if t >= 2 else one))

    assert set(found) == {"low_coverage"}
    assert found["low_coverage"].severity == "critical"
    assert "4 tasks have none at all" in found["low_coverage"].sentence


def test_zeros_without_replies_mean_death() -> None:
    silent = Rollout(0.0, empty=UNKNOWN)
    right = Rollout(1.0, empty=UNKNOWN)
    died = changed(mixed(), lambda t, _r, one: silent if t >= 3 else one)
    no_replies = changed(mixed(), lambda t, _r, _one: silent if t >= 3 else right)

    assert found_in(died)["environment_died"].evidence["before"] == 12
    assert "environment_died" not in found_in(no_replies)


def test_lasting_silence_means_death() -> None:
    dead = Rollout(0.0, empty=YES)

    assert "environment_died" in found_in(
        changed(mixed(), lambda t, _r, one: dead if t >= 3 else one)
    )


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [(0.1, 0.8, "threshold_unreached"), (2.0, 5.0, "threshold_always_reached")],
)
def test_a_threshold_out_of_range_is_told(low: float, high: float, name: str) -> None:
    tasks = changed(
        mixed(), lambda _t, r, one: Rollout(high if r % 2 else low, answer=one.answer)
    )

    found = found_in(tasks)

    assert set(found) == {name}
    assert found[name].evidence == {"threshold": 1.0, "min": low, "max": high}
    assert found_in(tasks, pass_threshold=high) == {}


def test_rewards_below_the_threshold_can_teach() -> None:
    rewards = ((0.1, 0.2), (0.0, 0.3), (0.2, 0.2))

    found = found_in([[Rollout(one) for one in task] for task in rewards])

    assert "only the 2 whose rewards differ can teach" in found["never_passes"].sentence
    assert "none can teach" not in found["never_passes"].sentence


def test_constant_tasks_cannot_teach() -> None:
    varied = changed(mixed(), lambda _t, r, one: Rollout(r * 0.1, answer=one.answer))
    tasks = [*varied[:3]]

    assert "threshold_unreached" in found_in(tasks)
    low = changed(mixed(2, 3), lambda _t, _r, one: Rollout(0.0, answer=one.answer))
    assert set(found_in(low)) == {"never_passes"}
    assert "up to 63.2 %" in found_in(low)["never_passes"].sentence
    high = changed(mixed(2, 3), lambda _t, _r, one: Rollout(1.0, answer=one.answer))
    assert set(found_in(high)) == {"always_passes"}


def test_single_rollouts_tell_no_signal() -> None:
    assert "too_few_repeats" in found_in(mixed(6, 1))


def test_tasks_with_double_repeats_are_told() -> None:
    tasks = mixed(6, 4)
    uneven = [[*tasks[0], *tasks[0]], *tasks[1:]]

    assert "unequal_repeats" not in found_in(tasks)
    found = found_in(uneven)["unequal_repeats"]
    assert found.evidence == {"least": 4, "most": 8, "tasks": 6}
    assert "more than 4 tries" in found.sentence


def test_a_lack_of_signal_is_noted() -> None:
    tasks = changed(mixed(), lambda t, r, one: Rollout(
        float(r % 2) if t == 0 else float(t % 2), answer=one.answer
    ))  # fmt: skip

    found = found_in(tasks)

    assert set(found) == {"little_signal"}
    assert found["little_signal"].evidence == {"zero_signal": 5, "tasks": 6}


def test_a_length_effect_is_noted_with_its_n() -> None:
    tasks = changed(mixed(10, 6), lambda _t, r, one: Rollout(
        float(r % 2), tokens=200.0 - 100 * (r % 2) + r, answer=one.answer
    ))  # fmt: skip

    found = found_in(tasks)

    assert set(found) == {"length_bias"}
    assert "n=60 rollouts of 10 tasks" in found["length_bias"].sentence


def test_truncation_of_a_tenth_is_a_warning() -> None:
    tasks = changed(mixed(), lambda _t, r, one: Rollout(
        one.reward, tokens=900.0 if r == 0 else 100.0, truncated=int(r == 0),
        answer=one.answer,
    ))  # fmt: skip

    found = found_in(tasks)["truncated_answers"]

    assert found.severity == "warning"
    assert "6 of 24 answers (25 %)" in found.sentence
    assert "900 tokens on average, the others 100" in found.sentence


def test_every_finding_name_is_listed() -> None:
    masked = Rollout(status=RolloutStatus.MASKED)
    unscored = Rollout(status=RolloutStatus.UNSCORED)
    runs = [
        mixed(6, 1), [[masked] * 4], [[masked, masked, *mixed(1)[0]]],
        [[unscored, *mixed(1)[0]]], [[FAILED]],
    ]  # fmt: skip

    for tasks in runs:
        assert set(found_in(tasks)) <= set(NAMES)


def test_the_worst_stands_first() -> None:
    tasks = mixed()
    tasks[0][0] = Rollout(1.0, empty=YES)
    tasks[0][1] = Rollout(status=RolloutStatus.UNSCORED)

    severities = [
        f.severity for f in derive_insights(table_of(tasks), ProfileOptions()).findings
    ]

    assert severities == sorted(severities, key=["critical", "warning", "note"].index)
    assert len(set(severities)) > 1
