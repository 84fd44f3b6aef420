"""Rows with prompts, skills and environment servers, to the byte as Gym plans them."""

from typing import Any

import orjson
import pytest

from reward_profiling.errors import DatasetError
from reward_profiling.planning.additions.prompt_template import PromptTemplate
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import Plan
from reward_profiling.planning.planner import Planner
from reward_profiling.planning.row_members import taskset_of
from reward_profiling.planning.task_rows import Additions, materialized_row

Json = dict[str, Any]
MADE: Json = {"task_id": {"taskset": "ts", "task_id": "1"}, "task_input": {"x": "a"}}
FLAT: Json = {"responses_create_params": {"input": "a"}}
TO_ES: Json = {"environment_server_routes": {"ts": "ES"}}
LEGACY: Json = {"environment_routing_mode": "legacy", "environment_server_name": "LS"}
PROMPT = Additions(prompt=PromptTemplate(user="Q: {q} {{lit}}", system="sys"))
SKILLS = Additions(skills={"path": "sk", "hash": "0", "skills": []})


def plan_of(rows: list[Json], options: PlanOptions, additions: Additions) -> Plan:
    planner = Planner(options, additions)
    for place, row in enumerate(rows):
        planner.add(row, orjson.dumps(row), "in.jsonl", place + 1, place)
    return planner.finish()


def lines_of(
    *rows: Json,
    additions: Additions = Additions(),  # noqa: B008 - a frozen value
    **options: Any,  # noqa: ANN401
) -> list[str]:
    chosen = PlanOptions(**options)
    plan = plan_of(list(rows), chosen, additions)
    return [
        orjson.dumps(
            materialized_row(rows[task.place], task, index, chosen, additions)
        ).decode()
        for task, index in plan.rollouts(interleave=False)
    ]


def faults_of(
    *rows: Json,
    additions: Additions = Additions(),  # noqa: B008 - a frozen value
    **options: Any,  # noqa: ANN401
) -> tuple[str, ...]:
    with pytest.raises(DatasetError) as raised:
        plan_of(list(rows), PlanOptions(**options), additions)
    return raised.value.faults


def test_a_prompt_makes_only_the_input() -> None:
    rows: list[Json] = [
        {"q": "hi", "responses_create_params": {"temperature": 1}},
        {"q": "yo"},
    ]

    found = lines_of(*rows, additions=PROMPT, agent_name="ag")

    messages = (
        '[{"role":"system","content":"sys"},{"role":"user","content":"Q: %s {lit}"}]'
    )
    assert found == [
        '{"q":"hi","responses_create_params":{"temperature":1,"input":'
        + messages % "hi"
        + '},"agent_ref":{"name":"ag"},"_ng_task_index":0,"_ng_rollout_index":0}',
        '{"q":"yo","responses_create_params":{"input":'
        + messages % "yo"
        + '},"agent_ref":{"name":"ag"},"_ng_task_index":1,"_ng_rollout_index":0}',
    ]


@pytest.mark.parametrize("params", [None, {}, {"input": ""}, {"input": []}])
def test_an_empty_input_takes_the_prompt(params: Json | None) -> None:
    row = {"q": 1, "responses_create_params": params}

    (line,) = lines_of(row, additions=PROMPT, agent_name="ag")

    assert orjson.loads(line)["responses_create_params"]["input"][1] == {
        "role": "user",
        "content": "Q: 1 {lit}",
    }


def test_overrides_lie_over_the_prompt() -> None:
    overrides = {"input": "over"}

    (line,) = lines_of(
        {"q": 1}, additions=PROMPT, agent_name="a", responses_create_params=overrides
    )

    assert orjson.loads(line)["responses_create_params"] == overrides


def test_rows_no_prompt_can_take_are_named() -> None:
    rows: list[Json] = [
        {"q": 1, "responses_create_params": {"input": "own"}},
        {"q": 1},
        {"x": 1},
        {"q": 1, "responses_create_params": [5]},
        MADE,
    ]

    found = faults_of(*rows, additions=PROMPT, agent_name="a", **TO_ES)

    assert [fault.split(" ")[0] for fault in found] == [
        f"in.jsonl:{line}:" for line in (1, 3, 4, 5)
    ]
    assert "has its own responses_create_params.input" in found[0]
    assert "has no field 'q' for the prompt template; it has x" in found[1]
    assert "responses_create_params is not an object" in found[2]
    assert "so --prompt-config cannot change it" in found[3]


def test_a_rows_identity_is_its_own_line() -> None:
    fixed = Additions(prompt=PromptTemplate(user="same for all"))

    found = lines_of({"q": 1}, {"q": 2}, {"q": 1}, additions=fixed, agent_name="a")

    assert [orjson.loads(line)["_ng_task_index"] for line in found] == [0, 1, 0]


def test_skills_come_before_the_task_index() -> None:
    (line,) = lines_of(FLAT, additions=SKILLS, agent_name="ag")

    assert line == (
        '{"responses_create_params":{"input":"a"},"agent_ref":{"name":"ag"},'
        '"skills_ref":{"path":"sk","hash":"0","skills":[]},'
        '"_ng_task_index":0,"_ng_rollout_index":0}'
    )


def test_skills_are_replaced_in_place() -> None:
    (line,) = lines_of({"skills_ref": 5, **FLAT}, additions=SKILLS, agent_name="ag")

    assert line.startswith('{"skills_ref":{"path":"sk"')


@pytest.mark.parametrize("mode", [{}, LEGACY, {"environment_routing_mode": "taskset"}])
def test_a_made_task_has_its_tasksets_server(mode: Json) -> None:
    found = lines_of(MADE, num_repeats=2, agent_name="ignored", **TO_ES, **mode)

    assert found == [
        '{"task_id":{"taskset":"ts","task_id":"1"},"task_input":{"x":"a"},'
        f'"_ng_task_index":0,"_ng_environment_server":"ES","_ng_rollout_index":{i}}}'
        for i in range(2)
    ]


def test_a_legacy_row_keeps_its_own_agent() -> None:
    own = {"agent_ref": {"name": "x"}, "_ng_environment_server": "own"}

    found = lines_of(FLAT, {**FLAT, **own}, agent_name="ag", **LEGACY)

    params = '{"responses_create_params":{"input":"a"},'
    assert found == [
        params + '"_ng_task_index":0,"_ng_environment_server":"LS",'
        '"_ng_rollout_index":0}',
        params + '"agent_ref":{"name":"x"},"_ng_environment_server":"LS",'
        '"_ng_task_index":1,"_ng_rollout_index":0}',
    ]


def test_a_row_keeps_its_server_beside_agents() -> None:
    row = {**FLAT, "_ng_environment_server": "own", "agent_ref": {"name": "x"}}

    (line,) = lines_of(row)

    assert orjson.loads(line)["_ng_environment_server"] == "own"


@pytest.mark.parametrize(
    ("row", "options", "name"),
    [
        (MADE, TO_ES, "ts"),
        ({**MADE, "task_source": "s", "agent_ref": {"name": "x"}}, TO_ES, "ts"),
        ({**FLAT, "task_source": "s", "agent_ref": {"name": "x"}}, LEGACY, "s"),
        ({**FLAT, "agent_ref": {"name": "x"}}, LEGACY, "LS"),
    ],
)
def test_a_taskset_decides_repeats_first(row: Json, options: Json, name: str) -> None:
    assert len(lines_of(row, num_repeats={name: 2, "x": 5}, **options)) == 2


def test_a_stamped_row_is_not_fanned_out() -> None:
    row = {**FLAT, "agent_ref": {"name": "x"}}

    assert len(lines_of(row, fan_out={"x": ["p", "q"]}, **LEGACY)) == 1


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"responses_create_params": {"t": 1}}, "--responses-create-params"),
        ({"num_repeats_add_seed": True}, "--num-repeats-add-seed"),
        ({"additions": SKILLS}, "--skills"),
        ({"additions": PROMPT}, "--prompt-config"),
    ],
)
def test_made_tasks_refuse_idle_options(given: Json, flag: str) -> None:
    (fault,) = faults_of(MADE, **TO_ES, **given)

    assert f"in.jsonl:1: is a materialized task row, so {flag} cannot" in fault


@pytest.mark.parametrize("mode", [{}, LEGACY])
def test_a_taskset_always_needs_a_route(mode: Json) -> None:
    (fault,) = faults_of(MADE, environment_server_routes={"other": "ES"}, **mode)

    assert "belongs to taskset 'ts', which has no route" in fault


def test_tasksets_refuse_flat_rows() -> None:
    (fault,) = faults_of(FLAT, environment_routing_mode="taskset", **TO_ES)

    assert "has no task_id.taskset with a task_input" in fault


@pytest.mark.parametrize(
    ("row", "taskset"),
    [
        (MADE, "ts"),
        ({"task_id": {"taskset": "ts"}, "task_input": None}, "ts"),
        ({"task_id": {"taskset": "ts"}}, None),
        ({"task_id": {"taskset": ""}, "task_input": {}}, None),
        ({"task_id": {"taskset": 5}, "task_input": {}}, None),
        ({"task_id": {}, "task_input": {}}, None),
        ({"task_id": "ts", "task_input": {}}, None),
    ],
)
def test_only_a_taskset_makes_a_made_task(row: Json, taskset: str | None) -> None:
    assert taskset_of(row) == taskset


def test_a_name_without_rows_is_told() -> None:
    options = PlanOptions(environment_server_name="LS", agent_name="a")

    plan = plan_of([FLAT], options, Additions())

    (warning,) = plan.warnings
    assert warning.startswith("environment_server_name only has an effect with")
