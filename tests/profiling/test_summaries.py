import math
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.on_disk.failures import Failures
from reward_profiling.numerics.uncertainty import standard_error
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.profiling.matching import match
from reward_profiling.profiling.passes import pass_rate
from reward_profiling.profiling.summary.run_summary import AgentSummary
from reward_profiling.profiling.summary.summaries import add_up, summarize_agents
from reward_profiling.profiling.tabulation import tabulate, unscored_reasons
from tests.profiling.columns_of_rows import PlannedRow, ordered_records, plan_columns

Record = dict[str, object]
rewards = st.sampled_from([0, 1, 0.5, True, None, "1", math.nan, math.inf])
fates = st.sampled_from(["missing", "failed", "masked", "absent"]) | rewards
plans = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), fates))


def row(task: int, rollout: int, agent: str | None = "a") -> PlannedRow:
    return PlannedRow((task, rollout), agent, agent, 0)


def record(task: int, rollout: int, **members: object) -> Record:
    return {**members, "_ng_task_index": task, "_ng_rollout_index": rollout}


def summaries(
    rows: list[PlannedRow],
    results: list[Record],
    failed: dict[RolloutKey, int] | None = None,
) -> list[AgentSummary]:
    plan, records = plan_columns(rows), ordered_records(results)
    matching = match(plan, records, allow_partial=True)
    failures = {key: Failures(n, "timeout") for key, n in (failed or {}).items()}
    table = tabulate(plan, records, matching, failures)
    found = unscored_reasons(records)
    at = [row for row, has in enumerate(matching.has_record) if has]
    reasons = {at[row]: reason for row, reason in found.items()}
    return summarize_agents(table, reasons, pass_threshold=1.0)


def scored(*rewards_by_task: list[float]) -> AgentSummary:
    rows = [row(t, r) for t, rs in enumerate(rewards_by_task) for r in range(len(rs))]
    records = [
        record(t, r, reward=reward)
        for t, rs in enumerate(rewards_by_task)
        for r, reward in enumerate(rs)
    ]
    (summary,) = summaries(rows, records)
    return summary


@given(plans)
def test_counts_add_up_to_what_was_planned(
    plan: list[tuple[int, str, object]],
) -> None:
    rows = [PlannedRow((t, r), a, a, 0) for r, (t, a, _) in enumerate(plan)]
    records, failed = [], {}
    for rollout, (task, _, fate) in enumerate(plan):
        if fate == "failed":
            failed[task, rollout] = 1
        elif fate == "absent":
            records.append(record(task, rollout))
        elif fate != "missing":
            members = {"reward": fate, "mask_sample": fate == "masked"}
            records.append(record(task, rollout, **members))

    whole = add_up("o", summaries(rows, records, failed), [])

    assert whole.collected + whole.failed + whole.missing == whole.planned == len(plan)
    assert whole.scored + whole.unscored + whole.masked == whole.collected
    assert whole.is_partial == (whole.scored < len(plan))
    assert sum(whole.unscored_reasons.values()) == whole.unscored
    assert sum(whole.failed_classes.values()) == whole.failed
    assert all(agent.num_scored_tasks <= agent.num_tasks for agent in whole.agents)


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1), min_size=2, max_size=8))
def test_mean_and_error_are_over_tasks(tasks: list[list[float]]) -> None:
    means = [fmean(rewards) for rewards in tasks]

    summary = scored(*tasks)

    assert summary.mean_reward == pytest.approx(fmean(means))
    assert summary.standard_error == pytest.approx(
        stdev(means) / math.sqrt(len(means)), rel=1e-9, abs=1e-9
    )


def test_many_repeats_weigh_no_more() -> None:
    assert scored([1.0] * 9, [0.0]).mean_reward == 0.5


@pytest.mark.parametrize("huge", [1e200, 1e308])
def test_huge_rewards_have_a_mean(huge: float) -> None:
    assert scored([huge, huge], [huge, huge]).mean_reward == pytest.approx(huge)
    assert standard_error([huge, huge / 2]) == pytest.approx(huge / 4)


def test_one_task_has_no_error() -> None:
    assert scored([1.0, 0.0]).standard_error is None
    (summary,) = summaries([row(0, 0)], [])
    assert (summary.mean_reward, summary.standard_error) == (None, None)
    assert standard_error([0.25, 0.25]) == 0.0


def test_tasks_are_classed_by_their_passes() -> None:
    summary = scored([0, 0], [0.999, 0.5], [0, 1], [1, 1.0], [1 - 1e-12, 2])

    assert (summary.never_pass, summary.sometimes_pass, summary.always_pass) == (
        2, 1, 2,
    )  # fmt: skip


def test_one_rollout_does_not_mean_always() -> None:
    summary = scored([1.0], [0.0], [1.0, 1.0])

    assert (summary.never_pass, summary.sometimes_pass, summary.always_pass) == (
        0, 0, 1,
    )  # fmt: skip
    assert (summary.undetermined, summary.num_scored_tasks) == (2, 3)


def test_a_threshold_decides_what_passes() -> None:
    assert pass_rate([0.2, 0.5, 0.8, -1], 0.5) == 0.5


def test_an_unscored_task_is_in_no_class() -> None:
    records = [record(0, 0, reward=None), record(1, 0, mask_sample=True, reward=1)]

    (summary,) = summaries([row(0, 0), row(1, 0)], records)

    assert (summary.num_tasks, summary.num_scored_tasks) == (2, 0)
    assert (summary.unscored, summary.masked) == (1, 1)


def test_a_late_success_is_no_failure() -> None:
    (summary,) = summaries([row(0, 0)], [record(0, 0, reward=1)], {(0, 0): 2})

    assert (summary.failed, summary.collected) == (0, 1)


def test_two_failed_attempts_are_one_failure() -> None:
    (summary,) = summaries([row(0, 0)], [], {(0, 0): 2})

    assert (summary.failed, summary.missing) == (1, 0)


def test_agents_come_in_order_of_name() -> None:
    rows = [row(0, 0, "b"), row(0, 1, None), row(0, 2, "a")]

    assert [s.agent for s in summaries(rows, [])] == ["(no agent)", "a", "b"]
