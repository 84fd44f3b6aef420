from reward_profiling.collecting.aggregation.imputation import (
    failure_as_zero,
    fill_task_fields,
    missing_as_zero,
)

KEY = {"_ng_task_index": 3, "_ng_rollout_index": 1}


def test_a_failure_counts_its_reward_or_zero() -> None:
    assert failure_as_zero({**KEY, "reward": 0.5})["reward"] == 0.5
    assert failure_as_zero(KEY)["reward"] == 0.0


def test_a_failures_diagnosis_is_no_metric() -> None:
    said = {"_ng_failure_http_status": 500, "failure_kind": "x", "failure_reason": "y"}

    assert failure_as_zero({**KEY, **said, "mask_sample": True}) == {
        **KEY, "mask_sample": False, "reward": 0.0,
    }  # fmt: skip


def test_a_missing_rollout_keeps_its_owner() -> None:
    row = {**KEY, "agent_ref": {"name": "a"}, "_ng_environment_server": "e", "x": 1}

    counted = missing_as_zero(row)

    assert counted == {
        **KEY, "agent_ref": {"name": "a"}, "reward": 0.0, "_ng_environment_server": "e",
    }  # fmt: skip


def test_only_recorded_fields_are_filled_in() -> None:
    counted = {"reward": 0.0}
    row = {"level": 3, "hidden": 9, "_ng_x": 1, "response": {}, "reward": 7}

    fill_task_fields(counted, row, {"level", "_ng_x", "response", "reward"})

    assert counted == {"reward": 0.0, "level": 3}
