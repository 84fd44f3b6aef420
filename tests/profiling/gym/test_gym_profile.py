"""The edge cases of a profile as tables: rows of rewards in, statistics out.

`runs` is task → repeats → the fields of one record; every row's agent is "a".
"""

import math
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reward_profiling.errors import RecordError
from reward_profiling.profiling.gym.gym_profile import (
    Profile,
    TaskProfile,
    profile_columns,
)
from reward_profiling.profiling.summary.run_labels import run_labels
from tests.profiling.columns_of_rows import PlannedRow, plan_columns, record_columns

Runs = list[list[dict[str, Any]]]
Results = list[dict[str, Any]]


def plan_of(runs: Runs, agent: str | None = "a") -> list[PlannedRow]:
    keys = [(t, r) for t, task in enumerate(runs) for r in range(len(task))]
    return [PlannedRow(key, agent, agent, place) for place, key in enumerate(keys)]


def records_of(runs: Runs) -> Results:
    return [
        {**fields, "_ng_task_index": t, "_ng_rollout_index": r}
        for t, task in enumerate(runs)
        for r, fields in enumerate(task)
    ]


def profile_rewards(
    rows: list[PlannedRow], results: Results, *, allow_partial: bool
) -> Profile:
    found = profile_columns(
        plan_columns(rows), record_columns(results), allow_partial=allow_partial
    )
    return replace(found, tasks=list(found.tasks))


def tasks_of(profile: Profile) -> list[TaskProfile]:
    return list(profile.tasks)


def profile_of(runs: Runs, agent: str | None = "a") -> Profile:
    return profile_rewards(plan_of(runs, agent), records_of(runs), allow_partial=False)


def as_bytes(profile: Profile) -> bytes:
    tasks = [
        {**task.head, "p": task.sample_place, **task.tail} for task in profile.tasks
    ]
    return orjson.dumps([tasks, profile.agents, profile.repeats])


def rewards(*tasks: list[Any]) -> Runs:
    return [[{"reward": reward} for reward in task] for task in tasks]


ONE = {"reward": 1}
TWO_USAGE = {"input_tokens": 999, "response": {"usage": {"input_tokens": 10}}}

FIRST_TASK = [
    # name, runs, statistic → its exact JSON, or None where the key is left out
    ("one float makes every max a float", [[{"reward": 1.0, "n": 3}]],
     {"max/n": "3.0", "min/n": "3.0", "mean/n": "3.0"}),
    ("all whole numbers stay whole in max and min", [[{"reward": 1, "n": 3}]],
     {"max/n": "3", "min/reward": "1", "mean/n": "3.0", "std/n": "0.0"}),
    ("a column that a task lacks is left out there", [[{"a": 1}], [{"a": 1, "m": 2}]],
     {"mean/m": None, "std/m": None, "max/a": "1.0"}),
    ("one value among two rollouts has no std", [[{"a": 1, "m": 2}, {"a": 3}]],
     {"mean/m": "2.0", "std/m": None, "std/a": "1.4142135623730951"}),
    ("a null reward is no zero", rewards([None, 1.0]),
     {"mean/reward": "1.0", "std/reward": None}),
    ("text is no number", rewards(["1", "0"]), {"mean/reward": None}),
    ("true and false count as one and zero", rewards([True, False]),
     {"mean/reward": "0.5", "max/reward": "1", "min/reward": "0"}),
    ("usage wins over a field of its name", [[TWO_USAGE]],
     {"mean/input_tokens": "10.0"}),
    ("an underscore hides a column", [[{"_x": 1}]], {"mean/_x": None}),
    ("negative zero has a mean of zero", rewards([-0.0, -0.0]),
     {"mean/reward": "0.0", "median/reward": "0.0", "min/reward": "-0.0"}),
    ("rewards an ulp apart are profiled", rewards([0.3, 0.1 + 0.2]),
     {"min/reward": "0.3", "max/reward": "0.30000000000000004"}),
    ("a clock of nanoseconds is profiled", rewards([1.7e18, 1.7e18]),
     {"mean/reward": "1.7e+18", "std/reward": "0.0"}),
    ("sums that overflow become null", rewards([1e308, 1e308]),
     {"mean/reward": "null", "max/reward": "1e+308"}),
    ("of adjacent columns of floats a middle value is added to itself",
     [[{"a": 1e308, "b": 0.5}, {"a": 9e307, "b": 0.5}, {"a": 0.5, "b": 0.5}]],
     {"median/a": "null", "median/b": "0.5", "max/a": "1e+308", "min/a": "0.5"}),
    ("below half of the largest that changes nothing",
     [[{"a": 1e308, "b": 0.5}, {"a": 8.9e307, "b": 0.5}, {"a": 0.5, "b": 0.5}]],
     {"median/a": "8.9e+307"}),
    ("of the least values too",
     [[{"a": -1e308, "b": 0.5}, {"a": -9e307, "b": 0.5}, {"a": 0.5, "b": 0.5}]],
     {"median/a": "null", "max/a": "0.5"}),
    ("columns of floats with one of whole numbers between them are alone",
     [[{"a": 1e308, "n": 1, "b": 0.5}, {"a": 9e307, "n": 1, "b": 0.5},
       {"a": 0.5, "n": 1, "b": 0.5}]],
     {"median/a": "9e+307"}),
    ("the middle value of a column alone is taken as it is",
     [[{"a": 1e308, "b": 1}, {"a": 9e307, "b": 1}, {"a": 0.5, "b": 1}]],
     {"median/a": "9e+307"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "expected"),
    [row[1:] for row in FIRST_TASK],
    ids=[r[0] for r in FIRST_TASK],
)
def test_statistics_of_the_first_task(
    runs: Runs, expected: dict[str, str | None]
) -> None:
    head = tasks_of(profile_of(runs))[0].head

    found = {key: orjson.dumps(head[key]).decode() for key in expected if key in head}

    assert found == {key: text for key, text in expected.items() if text is not None}


@pytest.mark.parametrize(("count", "expected"), [(599, "null"), (601, "9.5e+307")])
def test_short_columns_double_their_middle(count: int, expected: str) -> None:
    profile = profile_of([[{"a": 9.5e307, "b": 0.5}] for _ in range(count)])

    (agent,) = profile.agents
    assert orjson.dumps(agent["median/a"]).decode() == expected


def test_task_row_has_gyms_key_order() -> None:
    task = tasks_of(profile_of([[{"b": 1, "a": 2.0}, {"b": 2, "a": 3.0}]]))[0]

    stats = ["mean", "max", "min", "median", "std"]
    expected = [f"{stat}/{name}" for stat in stats for name in ("b", "a")]
    assert list(task.head) == ["_ng_task_index", *expected]
    assert list(task.tail)[-1] == "rollout_infos"


@pytest.mark.parametrize(
    ("runs", "deviation"),
    [(rewards([1.0]), 0.0), (rewards([1.0], [0.0]), math.sqrt(0.5))],
)
def test_single_rollouts_have_zero_std(runs: Runs, deviation: float) -> None:
    found = profile_of(runs)

    assert [task.head["std/reward"] for task in found.tasks] == [0.0] * len(runs)
    assert found.agents[0]["std/reward"] == deviation
    assert found.repeats == []
    assert not any("across_repeats" in key for key in found.agents[0])


def test_rows_without_agents_have_only_tasks() -> None:
    found = profile_of(rewards([1.0, 0.0]), agent=None)

    assert (len(tasks_of(found)), found.agents, found.repeats) == (1, [], [])


def test_empty_plan_has_an_empty_profile() -> None:
    found = profile_of([])

    assert (found.tasks, found.agents, found.repeats) == ([], [], [])


def test_no_number_leaves_only_counts() -> None:
    found = profile_of([[{"reward": None}, {"reward": None}]])

    assert list(tasks_of(found)[0].head) == ["_ng_task_index"]
    assert found.agents == [{"agent_ref": {"name": "a"}}]
    assert [entry["sample_count"] for entry in found.repeats] == [1, 1]


def test_the_lowest_repeat_is_the_sample() -> None:
    runs = rewards([0.0, 1.0, 1.0])

    found = profile_rewards(plan_of(runs), records_of(runs)[1:], allow_partial=True)

    assert tasks_of(found)[0].sample_place == 1
    assert tasks_of(found)[0].tail["missing_num_rollouts"] == 1


def test_a_partial_profile_omits_empty_tasks() -> None:
    runs = rewards([0.0], [1.0])

    found = profile_rewards(plan_of(runs), records_of(runs)[1:], allow_partial=True)

    assert [task.head["_ng_task_index"] for task in found.tasks] == [1]
    assert found.completion.missing_input_rows == 1


def test_a_masked_rollout_is_not_expected() -> None:
    runs: Runs = [[{"reward": 1.0}, {"reward": 0.0, "mask_sample": True}]]

    found = profile_of(runs)

    assert tasks_of(found)[0].tail["expected_num_rollouts"] == 1
    assert found.agents[0]["mean/reward"] == 1.0
    assert found.agents[0]["coverage/masked_rollouts"] == 1
    assert found.completion.collected == 2


def test_a_masked_agent_keeps_its_coverage() -> None:
    runs: Runs = [[{"reward": 1.0, "mask_sample": True}]]

    found = profile_of(runs)

    assert found.tasks == []
    assert found.agents[0]["coverage/fully_masked_tasks"] == 1


@pytest.mark.parametrize(
    ("runs_on", "expected"),
    [
        ([("a", "a")], {"a": "a"}),
        ([("east", "a"), ("west", "b")], {"east": "a", "west": "b"}),
        ([("east", "a"), ("west", "a")], {"east": "east", "west": "west"}),
        ([("b", "a"), ("west", "b")], {"b": "a", "west": "b"}),
        ([("a", "b"), ("b", "c"), ("c", "c")], {"a": "a", "b": "b", "c": "c"}),
        ([("east", None)], {"east": "east"}),
        ([(None, None)], {}),
    ],
)
def test_clear_run_keys_have_agent_labels(
    runs_on: list[tuple[str | None, str | None]], expected: dict[str, str]
) -> None:
    runners = [(agent, key) for key, agent in runs_on]

    assert run_labels(runners) == expected


def test_text_and_numbers_have_no_order() -> None:
    rows = [PlannedRow((0, 0), "a", "a", 0), PlannedRow(("x", 0), "a", "a", 0)]
    found = [{"_ng_task_index": task, "_ng_rollout_index": 0} for task in (0, "x")]

    with pytest.raises(RecordError, match="text in some records"):
        profile_rewards(rows, found, allow_partial=False)


VALUES = st.none() | st.booleans() | st.floats(-9, 9) | st.integers(-9, 9)
FIELDS = st.dictionaries(st.sampled_from(["reward", "n", "a/b"]), VALUES)
RUNS = st.lists(st.lists(FIELDS, min_size=1, max_size=5), max_size=4)


@settings(deadline=None)
@given(RUNS, st.randoms(use_true_random=False))
def test_line_order_changes_no_profile(runs: Runs, random: Random) -> None:
    rows, records = plan_of(runs), records_of(runs)
    expected = as_bytes(profile_rewards(rows, records, allow_partial=False))

    random.shuffle(rows)
    random.shuffle(records)

    assert as_bytes(profile_rewards(rows, records, allow_partial=False)) == expected


@settings(deadline=None)
@given(RUNS)
def test_statistics_lie_between_min_and_max(runs: Runs) -> None:
    for task in profile_of(runs).tasks:
        for key, value in task.head.items():
            statistic, _, name = key.partition("/")
            if statistic in {"mean", "median"}:
                low, high = task.head[f"min/{name}"], task.head[f"max/{name}"]
                assert low - 1e-9 <= value <= high + 1e-9


@settings(deadline=None)
@given(RUNS)
def test_each_record_is_in_one_rollout_info(runs: Runs) -> None:
    tails = [orjson.dumps(task.tail) for task in profile_of(runs).tasks]
    infos = [i for tail in tails for i in orjson.loads(tail)["rollout_infos"]]

    found = [(info["_ng_task_index"], info["_ng_rollout_index"]) for info in infos]

    assert found == [row.key for row in plan_of(runs)]
