import pytest

from reward_profiling.profiling.rollout_table import RolloutStatus
from tests.insights.tables import MASKED, UNSCORED, Rollout, insights


@pytest.mark.parametrize("reward", [UNSCORED])
def test_a_missing_reward_lowers_coverage(
    reward: Rollout,
) -> None:
    found = insights([1.0, reward])

    assert (found.run.coverage.scored, found.run.coverage.unscored) == (1, 1)
    assert found.run.coverage.scored_share == 0.5
    assert (found.run.reward.macro_mean, found.run.reward.num_tasks) == (1.0, 1)
    assert found.run.reward.num_rollouts == 1


def test_masked_rollouts_measure_nothing() -> None:
    found = insights([*[MASKED] * 9, 1.0])

    assert (found.run.reward.macro_mean, found.run.reward.num_rollouts) == (1.0, 1)
    assert (found.run.coverage.masked, found.run.coverage.scored_share) == (9, 0.1)
    assert [finding.name for finding in found.findings[:2]] == [
        "mostly_masked", "low_coverage",
    ]  # fmt: skip
    assert found.tasks[0].task_class == "undetermined"


def test_a_good_agent_hides_no_lost_one() -> None:
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
