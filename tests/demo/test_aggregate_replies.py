from typing import Any

import pytest

from reward_profiling.demo.aggregate_replies import aggregate_reply
from reward_profiling.errors import DuplicateRolloutError


def reply(task: int, rollout: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**fields, "_ng_task_index": task, "_ng_rollout_index": rollout}


def test_nothing_aggregates_to_nothing() -> None:
    assert aggregate_reply([]) == {
        "group_level_metrics": [],
        "agent_metrics": {},
        "key_metrics": {},
        "perf_summary": None,
        "repeat_level_metrics": [],
    }


def test_agent_metrics_end_with_num_repeats() -> None:
    found = aggregate_reply([reply(0, 0, reward=1.0), reply(0, 1, reward=0.0)])

    assert list(found["agent_metrics"])[-1] == "num_repeats"
    assert found["agent_metrics"]["num_repeats"] == 2
    assert found["key_metrics"] == {"mean/reward": 0.5}
    assert all("agent_ref" not in entry for entry in found["repeat_level_metrics"])


def test_wholly_masked_replies_have_coverage() -> None:
    found = aggregate_reply([reply(0, 0, reward=1.0, mask_sample=True)])

    assert found["group_level_metrics"] == []
    assert found["agent_metrics"] == found["key_metrics"]
    assert found["agent_metrics"]["coverage/masked_rollouts"] == 1


def test_a_reply_without_a_key_is_the_first() -> None:
    found = aggregate_reply([{"reward": 1.0}])

    assert found["group_level_metrics"][0]["_ng_task_index"] == 0


def test_duplicate_replies_are_refused() -> None:
    with pytest.raises(DuplicateRolloutError, match=r"\(0, 0\)"):
        aggregate_reply([reply(0, 0), reply(0, 0)])
