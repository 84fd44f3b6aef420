"""Tables of rollouts for tests, written as a person thinks of them."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from hypothesis import strategies as st

from reward_profiling.insights.document import Insights, derive_insights
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import NO, RolloutStatus, RolloutTable

SCORED = RolloutStatus.SCORED


@dataclass
class Rollout:
    """One row; its task and index come from where it stands."""

    reward: float = nan
    status: RolloutStatus = SCORED
    tokens: float = nan
    truncated: int = NO
    empty: int = NO
    only_thought: int = NO
    has_error: int = NO
    answer: int = 0
    agent: str = "a"
    failure: str | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


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
    **options: Any,  # noqa: ANN401 - those of `ProfileOptions`
) -> Insights:
    given_answers = None if answers is None else array("q", answers)
    return derive_insights(table_of(tasks), ProfileOptions(**options), given_answers)


def table_of(tasks: Sequence[Sequence[Rollout | float]]) -> RolloutTable:
    """Return the table of `tasks[t][r]`: a rollout, or only its reward."""
    listed = [
        (task, index, one if isinstance(one, Rollout) else Rollout(float(one)))
        for task, rollouts in enumerate(tasks)
        for index, one in enumerate(rollouts)
    ]
    table = RolloutTable()
    table.agents = sorted({one.agent for _, _, one in listed})
    seen: dict[int, int] = {}
    for task, index, one in listed:
        if task not in seen:
            seen[task] = len(table.tasks)
            table.tasks.append(task)
        if one.failure is not None:
            table.failure_class[len(table)] = one.failure
        is_scored = one.status == SCORED
        table.task.append(seen[task])
        table.rollout.append(index)
        table.agent.append(table.agents.index(one.agent))
        table.status.append(one.status)
        table.reward.append(one.reward if is_scored else nan)
        table.output_tokens.append(one.tokens)
        table.truncated.append(one.truncated)
        table.empty.append(one.empty)
        table.only_thought.append(one.only_thought)
        table.has_error.append(one.has_error)
        table.answer.append(one.answer)
        table.attempts.append(int(one.failure is not None))
    table.metrics = _columns([one.metrics for _, _, one in listed])
    table.components = _columns([one.components for _, _, one in listed])
    return table


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, "array[float]"]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: array("d", [row.get(name, nan) for row in rows]) for name in names}
