"""Lines of a plan as requests: a row as it is, or the episode that it asks for."""

from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import RecordError
from reward_profiling.planning.on_disk.planned_rollouts import (
    PlannedRollout,
    dealt,
    read_planned,
    with_attempt,
)

Json = dict[str, Any]
KEY: Json = {"_ng_task_index": 3, "_ng_rollout_index": 2}
MADE: Json = {
    "task_id": {"taskset": "ts", "task_id": "1"}, "task_input": {"x": [1, "é"]},
    "_ng_environment_server": "ES", **KEY,
}  # fmt: skip
FLAT: Json = {"responses_create_params": {}, "agent_ref": {"name": "a"}, **KEY}


def planned(folder: Path, row: Json) -> PlannedRollout:
    path = folder / "plan.jsonl"
    path.write_bytes(orjson.dumps(row) + b"\n")
    (found,) = read_planned(path)
    return found


def refusal(folder: Path, row: Json) -> str:
    with pytest.raises(RecordError, match=r"plan\.jsonl:1: ") as raised:
        planned(folder, row)
    return str(raised.value)


def test_a_flat_row_is_sent_unchanged(tmp_path: Path) -> None:
    found = planned(tmp_path, FLAT)

    assert found.body == orjson.dumps(FLAT)
    assert (found.runner, found.server, found.is_enveloped) == ("a", None, False)


def test_a_stamped_row_goes_to_its_server(tmp_path: Path) -> None:
    found = planned(tmp_path, {**FLAT, "_ng_environment_server": "ES"})

    assert (found.runner, found.agent, found.is_enveloped) == ("ES", "a", False)
    assert found.stamps["agent_ref"] == {"name": "a"}


def test_a_made_task_goes_as_an_episode(tmp_path: Path) -> None:
    found = planned(tmp_path, {**MADE, "skills_ref": 1})

    assert orjson.loads(found.body) == {
        "episode_id": {"rollout_id": "3-2", "attempt": 0},
        "task": {"task_id": MADE["task_id"], "task_input": MADE["task_input"]},
    }
    assert (found.runner, found.agent, found.is_enveloped) == ("ES", None, True)
    assert list(found.stamps) == [*KEY, "skills_ref"]


def test_a_rows_rollout_id_names_its_episode(tmp_path: Path) -> None:
    found = planned(tmp_path, {**MADE, "_ng_rollout_id": "r-1.x_2"})

    assert orjson.loads(found.body)["episode_id"]["rollout_id"] == "r-1.x_2"
    assert found.stamps["_ng_rollout_id"] == "r-1.x_2"


@pytest.mark.parametrize("name", ["-x", "", "é", "a b", 5, ["x"]])
def test_a_rollout_id_must_suit_gym(tmp_path: Path, name: object) -> None:
    said = refusal(tmp_path, {**MADE, "_ng_rollout_id": name})

    assert f"_ng_rollout_id is {name!r}, not letters" in said


def test_a_new_attempt_keeps_the_episode_id(tmp_path: Path) -> None:
    again = with_attempt(planned(tmp_path, MADE), 2)

    assert orjson.loads(again.body)["episode_id"] == {"rollout_id": "3-2", "attempt": 2}
    assert again.stamps["_ng_attempt_index"] == 2
    assert "_ng_attempt_index" not in orjson.loads(again.body)


def test_a_flat_rows_new_attempt_is_stamped(tmp_path: Path) -> None:
    again = with_attempt(planned(tmp_path, FLAT), 2)

    assert orjson.loads(again.body) == {**FLAT, "_ng_attempt_index": 2}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (KEY, "has no agent; materialize the inputs again"),
        ({**KEY, "agent_ref": None}, "has no agent"),
        ({**KEY, "agent_ref": "x"}, "agent_ref is text"),
        ({**MADE, "_ng_environment_server": None}, "without an environment server"),
        ({**KEY, "task_id": {"taskset": ""}, "task_input": {}}, "has no agent"),
    ],
)
def test_a_row_that_nobody_runs_is_refused(
    tmp_path: Path, row: Json, said: str
) -> None:
    assert said in refusal(tmp_path, row)


@given(st.integers(0, 500), st.integers(1, 64))
def test_every_item_is_in_one_shard(planned: int, count: int) -> None:
    shards = [dealt(range(planned), index, count) for index in range(count)]

    assert sorted(chain.from_iterable(shards)) == list(range(planned))


@given(st.integers(0, 500), st.integers(1, 64))
def test_shards_differ_by_one_item_at_most(planned: int, count: int) -> None:
    sizes = [len([*dealt(range(planned), i, count)]) for i in range(count)]

    assert max(sizes) - min(sizes) <= 1


def test_neighbours_go_to_different_shards() -> None:
    assert list(dealt(range(6), 1, 3)) == [1, 4]
