from reward_profiling.insights.document import derive_insights
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import UNKNOWN, YES
from tests.insights.tables import Rollout, insights, table_of


def test_silent_replies_beside_cuts_are_whole() -> None:
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
