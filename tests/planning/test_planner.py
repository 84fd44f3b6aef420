"""Plans as tables: what a row asks for, and who runs it."""

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.errors import DatasetError, RecordError
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import Plan
from reward_profiling.planning.planner import Planner
from reward_profiling.planning.task_rows import materialized_row, seeded_metadata

Row = dict[str, Any]
Key = tuple[int | str, int]


def row(number: int = 0, agent: str | None = "a", **fields: Any) -> Row:  # noqa: ANN401
    ref = {} if agent is None else {"agent_ref": {"name": agent}}
    return {"responses_create_params": {"input": f"q{number}"}, **ref, **fields}


def plan_of(rows: list[Row], **options: Any) -> Plan:  # noqa: ANN401
    planner = Planner(PlanOptions(**options))
    for place, fields in enumerate(rows):
        planner.add(fields, orjson.dumps(fields), "in.jsonl", place + 1, place)
    return planner.finish()


def lines_of(rows: list[Row], **options: Any) -> dict[Key, bytes]:  # noqa: ANN401
    chosen = PlanOptions(**options)
    found = plan_of(rows, **options).rollouts(interleave=chosen.interleave_repeats)
    return {
        (task.task_index, index): orjson.dumps(
            materialized_row(rows[task.place], task, index, chosen)
        )
        for task, index in found
    }


def agents_of(rows: list[Row], **options: Any) -> list[str | None]:  # noqa: ANN401
    return [task.agent for task in plan_of(rows, **options).tasks]


TAGGED = st.integers(0, 3).map(row) | st.integers(0, 3).map(lambda n: row(n, "b"))
ROWS = st.lists(TAGGED, min_size=1, max_size=6)
REPEATS = st.integers(1, 4)


@settings(deadline=None)
@given(ROWS, REPEATS)
def test_every_rollout_is_planned_once(rows: list[Row], repeats: int) -> None:
    plan = plan_of(rows, num_repeats=repeats)
    keys = [(task.task_index, index) for task, index in plan.rollouts(interleave=False)]

    lines = Counter(orjson.dumps(fields) for fields in rows)
    asked = sorted(count * repeats for count in lines.values())
    assert len(set(keys)) == len(keys) == plan.num_rollouts == len(rows) * repeats
    assert sorted(Counter(task for task, _ in keys).values()) == asked
    assert plan.num_tasks == len(lines)


@settings(deadline=None)
@given(ROWS, REPEATS)
def test_a_tasks_repeats_have_no_gap(rows: list[Row], repeats: int) -> None:
    keys = sorted(lines_of(rows, num_repeats=repeats))

    numbered = Counter(task for task, _ in keys).items()
    assert keys == [(task, index) for task, n in numbered for index in range(n)]


@settings(deadline=None)
@given(ROWS, REPEATS)
def test_interleaving_changes_only_the_order(rows: list[Row], repeats: int) -> None:
    by_task = lines_of(rows, num_repeats=repeats)

    by_repeat = lines_of(rows, num_repeats=repeats, interleave_repeats=True)

    assert by_repeat == by_task
    assert [index for _, index in by_repeat] == sorted(index for _, index in by_task)


@settings(deadline=None)
@given(rows=ROWS, repeats=REPEATS, more=REPEATS, seed=st.booleans())
def test_more_repeats_keep_every_key(
    rows: list[Row], repeats: int, more: int, *, seed: bool
) -> None:
    before = lines_of(rows, num_repeats=repeats, num_repeats_add_seed=seed)

    after = lines_of(rows, num_repeats=repeats + more, num_repeats_add_seed=seed)

    assert before.items() <= after.items()


@settings(deadline=None)
@given(ROWS, ROWS, REPEATS)
def test_appended_rows_keep_every_key(
    rows: list[Row], appended: list[Row], repeats: int
) -> None:
    before = lines_of(rows, num_repeats=repeats)

    after = lines_of([*rows, *appended], num_repeats=repeats)

    assert before.items() <= after.items()


def test_plan_of_two_tasks_in_both_orders() -> None:
    rows = [row(0), row(1)]

    by_task = list(lines_of(rows, num_repeats=2))
    by_repeat = list(lines_of(rows, num_repeats=2, interleave_repeats=True))

    assert by_task == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert by_repeat == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_identical_rows_are_repeats() -> None:
    plan = plan_of([row(), row(), row()], num_repeats=2)

    assert [task.rollout_indices[0] for task in plan.tasks] == [0, 2, 4]
    assert plan.num_tasks == 1
    assert len(plan.warnings) == 1
    assert plan.warnings[0].startswith("2 rows are identical to an earlier row")


@pytest.mark.parametrize(
    ("fields", "options", "expected"),
    [
        (row(), {}, ["a"]),
        (row(), {"agent_name": "z"}, ["z"]),
        (row(), {"default_agent": "z"}, ["a"]),
        (row(agent=None), {"default_agent": "z"}, ["z"]),
        (row(agent=None, task_source="s"), {"default_agent": "z"}, [None]),
        (row(agent=None, task_source="s"), {}, [None]),
        (row(agent=None, task_source="s"), {"agent_map": {"s": "z"}}, ["z"]),
        (row(task_source="s"), {"agent_map": {"s": "z", "a": "y"}}, ["y"]),
        (row(task_source="s"), {"agent_map": {"s": "z"}}, ["z"]),
        (row(), {"agent_map": {"_default": "z"}}, ["z"]),
        (row(agent=""), {"agent_name": "z"}, ["z"]),
        (row(agent=""), {"default_agent": "z"}, ["z"]),
        (row(task_source=""), {}, ["a"]),
        (row(), {"fan_out": {"a": ["x", "a"]}}, ["x", "a"]),
        (row(), {"fan_out": {"z": ["x"]}, "agent_name": "z"}, ["z"]),
        (row(agent=None, task_source="s"), {"fan_out": {"s": ["x", "y"]}}, ["x", "y"]),
    ],
)
def test_row_is_run_by(
    fields: Row, options: dict[str, Any], expected: list[str | None]
) -> None:
    assert agents_of([fields], **options) == expected


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [(None, 1), (3, 3), ({"a": 2}, 2), ({"_default": 4}, 4), ({"a": 2, "b": 9}, 2)],
)
def test_repeats_are_a_number_or_by_agent(
    repeats: int | dict[str, int] | None, expected: int
) -> None:
    assert plan_of([row()], num_repeats=repeats).num_rollouts == expected


def test_fan_out_counts_across_agents() -> None:
    found = lines_of([row()], num_repeats=2, fan_out={"a": ["x", "y"]})

    agents = [orjson.loads(line)["agent_ref"]["name"] for line in found.values()]
    assert list(found) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert agents == ["x", "x", "y", "y"]


def test_given_indices_keep_their_gaps() -> None:
    rows = [row(n, _ng_task_index=index) for n, index in enumerate([4, "x", 0])]

    assert list(lines_of(rows)) == [(4, 0), ("x", 0), (0, 0)]


def test_an_index_collision_names_both_lines() -> None:
    rows = [row(0), row(1, _ng_task_index=0)]

    with pytest.raises(DatasetError, match="line 2 has _ng_task_index 0, but line 1"):
        plan_of(rows)


def test_rows_of_one_index_share_its_repeats() -> None:
    rows = [row(0, _ng_task_index=7), row(1, _ng_task_index=7)]

    assert list(lines_of(rows, num_repeats=2)) == [(7, 0), (7, 1), (7, 2), (7, 3)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"agent_ref": {"name": "a"}}, "has no responses_create_params"),
        (row() | {"responses_create_params": []}, "responses_create_params is not an"),
        (row(agent_ref="a"), "agent_ref is text, not an object"),
        (row(agent_ref={"name": 5}), "agent_ref.name is a number"),
        (row(agent=""), "names no agent; add agent_ref"),
        (row(agent="", task_source="s"), "names no agent; add agent_ref"),
        (row(task_source=5), "task_source is not text"),
        (row(agent=None, task_source=""), "names no agent; add agent_ref"),
        (row(agent=None), "names no agent; add agent_ref"),
        (row(_ng_task_index=None), "_ng_task_index is None, not a whole number"),
        (row(_ng_task_index=1.5), "_ng_task_index is 1.5, not a whole number"),
        (row(_ng_task_index=True), "_ng_task_index is True, not a whole number"),
        (
            row(task_id={"taskset": "s"}, task_input={}),
            "belongs to taskset 's', which has",
        ),
    ],
)
def test_an_unplannable_row_names_its_line(fields: Row, reason: str) -> None:
    with pytest.raises(DatasetError) as raised:
        plan_of([row(), fields])

    assert f"in.jsonl:2: {reason}" in str(raised.value)


def test_every_bad_row_is_named_at_once() -> None:
    with pytest.raises(DatasetError, match=r"^30 task rows cannot be used") as raised:
        plan_of([{"n": number} for number in range(30)])

    shown = str(raised.value).splitlines()
    assert len(raised.value.faults) == 30
    assert len(shown) == 22
    assert shown[-1] == "  … and 10 more"


def test_repeats_must_name_an_agent_of_a_row() -> None:
    with pytest.raises(DatasetError, match="num_repeats names neither 'a' nor"):
        plan_of([row()], num_repeats={"b": 2})


def test_repeats_of_no_row_are_told() -> None:
    plan = plan_of([row()], num_repeats={"a": 1, "b": 2, "_default": 3})

    assert plan.warnings == ["num_repeats names agents that no row has: b"]


def test_overridden_agents_are_counted() -> None:
    plan = plan_of([row(0), row(1), row(2, "b")], agent_name="b")

    assert plan.warnings == ["overrode the agent of 2 rows: a → b"]


def test_no_rows_are_refused() -> None:
    with pytest.raises(DatasetError, match="holds no task rows"):
        plan_of([])


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, {"extra_body": '{"seed": 3}'}),
        ({}, {"extra_body": '{"seed": 3}'}),
        ({"k": "v"}, {"k": "v", "extra_body": '{"seed": 3}'}),
        ({"extra_body": '{"x":1}', "k": "v"},
         {"extra_body": '{"x": 1, "seed": 3}', "k": "v"}),
        ({"extra_body": '{"seed":9,"é":"é"}'},
         {"extra_body": '{"seed": 3, "\\u00e9": "\\u00e9"}'}),
    ],
)  # fmt: skip
def test_seed_is_laid_into_the_metadata(
    metadata: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    found = seeded_metadata({"metadata": metadata}, 3)

    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize(
    "metadata", ["text", [1], {"extra_body": "{"}, {"extra_body": "[1]"},
                 {"extra_body": None}, {"extra_body": {"x": 1}}],
)  # fmt: skip
def test_metadata_must_take_a_seed(metadata: object) -> None:
    with pytest.raises(RecordError, match="metadata"):
        seeded_metadata({"metadata": metadata}, 0)


# Rows in, the plan's line out, as Gym writes it.
WRITTEN = [
    ('{"responses_create_params":{"input":"q"},"x":1,"agent_ref":{"name":"a"}}', {},
     ('{"responses_create_params":{"input":"q"},"x":1,"agent_ref":{"name":"a"},'
     '"_ng_task_index":0,"_ng_rollout_index":0}')),
    (('{"_ng_rollout_index":9,"agent_ref":{"type":"t","name":"a"},'
     '"responses_create_params":{"temperature":0}}'),
     {"responses_create_params": {"temperature": 1.0, "top_p": None}},
     ('{"_ng_rollout_index":0,"agent_ref":{"type":"t","name":"a"},'
     '"responses_create_params":{"temperature":1.0,"top_p":null},"_ng_task_index":0}')),
    ('{"responses_create_params":{},"agent_ref":{"type":"t","name":"a"}}',
     {"agent_name": "a"},
     ('{"responses_create_params":{},"agent_ref":{"name":"a"},'
     '"_ng_task_index":0,"_ng_rollout_index":0}')),
    ('{"responses_create_params":{},"task_source":"s"}',
     {"fan_out": {"s": ["x"]}},
     ('{"responses_create_params":{},"task_source":"s","_ng_task_index":0,'
     '"agent_ref":{"name":"x"},"_ng_rollout_index":0}')),
    ('{"responses_create_params":{"metadata":null},"agent_ref":{"name":"a"}}',
     {"num_repeats_add_seed": True},
     ('{"responses_create_params":{"metadata":{"extra_body":"{\\"seed\\": 0}"}},'
     '"agent_ref":{"name":"a"},"_ng_task_index":0,"_ng_rollout_index":0}')),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "expected"), WRITTEN)
def test_planned_line_is_gyms_to_the_byte(
    text: str, options: dict[str, Any], expected: str
) -> None:
    found = lines_of([orjson.loads(text)], **options)

    assert [line.decode() for line in found.values()] == [expected]
