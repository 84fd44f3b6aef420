from typing import Any

import orjson
import pytest

from reward_profiling.errors import RecordError
from reward_profiling.planning.row_members import agent_name, rollout_key
from reward_profiling.profiling.gym.rollout_infos import RolloutInfos
from reward_profiling.profiling.records.light_records import light_record
from tests.profiling.columns_of_rows import metric_columns, record_columns

KEY = {"_ng_task_index": 4, "_ng_rollout_index": 1}


def metrics(**result: Any) -> dict[str, Any]:  # noqa: ANN401
    records = record_columns([{**result, **KEY}])
    return {m.name: m.at([0])[0] for m in metric_columns(records).metrics}


def info(**result: Any) -> dict[str, Any]:  # noqa: ANN401
    (text,) = RolloutInfos(record_columns([{**result, **KEY}])).at([0])
    found = orjson.loads(text)
    assert found.pop("rollout_id") == "4:1"
    return {k: v for k, v in found.items() if k not in KEY}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"reward": 1.0, "ok": True}, {"reward": 1.0, "ok": 1}),
        ({"reward": None, "x": "1", "y": [1], "z": {"a": 1}}, {}),
        ({"_hidden": 1, "": 2}, {"": 2}),
        ({"response": None, "n": 1}, {"n": 1}),
        ({"response": {}, "n": 1}, {"n": 1}),
        ({"response": {"usage": None}}, {}),
        ({"response": {"usage": {"a": 1, "d": {"b": 1}, "_u": 1}}}, {"a": 1}),
        ({"a": 9, "n": 0, "response": {"usage": {"a": 1}}}, {"a": 1, "n": 0}),
        ({"a": 9, "response": {"usage": {"a": None}}}, {}),
        ({"mask_sample": False, "n": 1}, {"n": 1}),
        ({"mask_sample": 0, "response": {"usage": {"mask_sample": 7}}},
         {"mask_sample": 7}),
    ],
)  # fmt: skip
def test_metrics_are_numbers_and_usage_wins(
    result: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = metrics(**result)

    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"n": 1, "reward": 0.5}, {"reward": 0.5, "n": 1}),
        ({"reward": None}, {"reward": None}),
        ({"reward": True, "ok": True}, {"reward": True, "ok": 1}),
        ({"reward": "1"}, {"reward": "1"}),
        ({"a": 9, "response": {"usage": {"a": 1, "_u": True}}}, {"a": 9, "_u": 1}),
        ({"response": 0, "mask_sample": False, "_h": 1}, {}),
        ({"response": {"usage": {"mask_sample": 7}}}, {"mask_sample": 7}),
    ],
)
def test_info_keeps_the_raw_reward(
    result: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert list(info(**result).items()) == list(expected.items())


@pytest.mark.parametrize("response", ["oops", [1], 5, {"usage": "x"}, {"usage": [1]}])
def test_only_masked_records_may_be_unusable(
    response: object,
) -> None:
    result = {"response": response, **KEY}

    with pytest.raises(RecordError, match="not an object"):
        light_record(result)

    assert light_record({**result, "mask_sample": True})["mask_sample"]


@pytest.mark.parametrize("index", [None, True, 1.5, 1e400, [1], {}])
def test_an_index_must_be_a_number_or_text(index: object) -> None:
    with pytest.raises(RecordError, match="not a whole number"):
        rollout_key({**KEY, "_ng_rollout_index": index})


@pytest.mark.parametrize("name", KEY)
def test_missing_index_is_named(name: str) -> None:
    row = {key: value for key, value in KEY.items() if key != name}

    with pytest.raises(RecordError, match=f"has no {name}"):
        rollout_key(row)


@pytest.mark.parametrize("ref", ["a", [1], 5, {"name": 5}])
def test_an_odd_agent_ref_is_refused(ref: object) -> None:
    with pytest.raises(RecordError, match="agent_ref"):
        agent_name({"agent_ref": ref})


def test_failure_class_is_kept() -> None:
    failed = record_columns([{**KEY, "_ng_failure_class": ""}])

    assert failed.strays == {0: ""}
    assert record_columns([KEY]).strays == {}


def test_a_whole_float_is_the_number() -> None:
    key = rollout_key({"_ng_task_index": 3.0, "_ng_rollout_index": 0.0})

    assert key == (3, 0)
    assert all(type(index) is int for index in key)
