"""The form that Prefect makes of the parameters, and what it refuses."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema

from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.reward_profiling import reward_profiling
from reward_profiling.flows.run_name import sentence

MODELS = (
    "RewardProfilingParams", "ServerOptions", "PlanOptions", "CollectOptions",
    "ProfileOptions",
)  # fmt: skip
DEMO = {"demo": True}


@pytest.fixture(scope="session")
def definitions() -> dict[str, dict[str, Any]]:
    listed: dict[str, dict[str, Any]]
    listed = parameter_schema(reward_profiling).model_dump()["definitions"]
    return listed


def fields(
    definitions: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for model in MODELS:
        for name, field in definitions[model]["properties"].items():
            yield f"{model}.{name}", field


def test_every_form_field_is_documented(
    definitions: dict[str, dict[str, Any]],
) -> None:
    listed = dict(fields(definitions))

    assert len(listed) > 25
    assert [n for n, field in listed.items() if not field.get("description")] == []
    # A nested model is named by its own title.
    unnamed = [n for n, f in listed.items() if not f.get("title") and "$ref" not in f]
    assert unnamed == []


def test_what_is_optional_has_a_default(
    definitions: dict[str, dict[str, Any]],
) -> None:
    assert definitions["RewardProfilingParams"]["required"] == ["output", "servers"]
    assert [m for m in MODELS[1:] if definitions[m].get("required")] == []


@pytest.mark.parametrize(
    ("model", "field", "bound"),
    [
        ("CollectOptions", "concurrency", {"minimum": 1, "maximum": 65536}),
        ("CollectOptions", "num_shards", {"minimum": 1, "maximum": 1024}),
        ("CollectOptions", "rollout_timeout", {"exclusiveMinimum": 0}),
        ("CollectOptions", "retries", {"minimum": 0, "maximum": 100}),
        ("ServerOptions", "start_timeout", {"exclusiveMinimum": 0}),
    ],
)
def test_the_form_knows_the_bounds(
    definitions: dict[str, dict[str, Any]],
    model: str,
    field: str,
    bound: dict[str, float],
) -> None:
    assert bound.items() <= definitions[model]["properties"][field].items()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"plan": {"num_repeats": 0}}, "num_repeats must be at least 1 (got 0)"),
        ({"plan": {"limit": 0}}, "limit must be at least 1 (got 0)"),
        ({"plan": {"unknown": 1}}, "unknown is not an option"),
        ({"collect": {"concurrency": 0}}, "concurrency must be at least 1 (got 0)"),
        ({"collect": {"retries": -1}}, "retries must be at least 0 (got -1)"),
        ({"collect": {"rollout_timeout": "soon"}}, "'soon' is not a duration"),
        ({"servers": {}}, "give exactly one of head_url"),
        ({"servers": {"demo": True, "head_url": "http://h"}}, "give exactly one of"),
        ({"servers": {"head_url": "http://h"}}, "input is required except"),
        ({"servers": {"head_url": "h:11000"}}, "head_url must be an address"),
        ({"spread": {"runner": "work-pool"}}, "give num_shards, at least 2"),
        ({"profile": {"pass_threshold": "high"}}, "pass_threshold must be a finite"),
    ],
)
def test_wrong_form_values_are_refused(wrong: dict[str, Any], said: str) -> None:
    given = {"output": "r.jsonl", "servers": DEMO, **wrong}

    with pytest.raises(ParameterTypeError) as raised:
        reward_profiling.validate_parameters({"params": given})
    assert said in str(raised.value)


def test_the_form_equals_the_command_line() -> None:
    given = {"output": "r.jsonl", "servers": DEMO, "plan": {"num_repeats": {"a": 2}}}

    params = reward_profiling.validate_parameters({"params": given})["params"]

    assert isinstance(params, RewardProfilingParams)
    assert sentence(params) == "repeats by agent of tasks into r.jsonl"
    assert params.output == Path("r.jsonl")


@pytest.mark.parametrize(
    "given",
    [
        {"output": "r.jsonl", "servers": DEMO},
        {
            "output": "runs/{date}/r.jsonl",
            "input": "é.jsonl",
            "servers": {"head_url": "http://127.0.0.1:11000"},
            "plan": {"num_repeats": {"_default": 4}, "fan_out": {"a": ["b", "c"]}},
            "collect": {"max_failures": "5%", "time_budget": "4h", "num_shards": 3},
            "profile": {"pass_threshold": 0.5, "strict": "critical"},
            "comparison": {"baseline": "b.jsonl", "max_regression": 0.02},
            "spread": {"runner": "dask", "runner_address": "tcp://10.0.0.1:8786"},
        },
    ],
)
def test_parameters_are_told_as_prefect_does(
    given: dict[str, Any],
) -> None:
    params = RewardProfilingParams.made(given)

    told = reward_profiling.serialize_parameters({"params": params})

    assert told == Flow.serialize_parameters(reward_profiling, {"params": params})
    assert RewardProfilingParams.made(told["params"]) == params
    others = {"params": params, "other": Path("a")}
    assert reward_profiling.serialize_parameters(others) == {**told, "other": "a"}


def test_parameters_import_no_prefect_server() -> None:
    script = (
        "import sys\n"
        "from reward_profiling.flows.reward_profiling import reward_profiling as flow\n"
        "from reward_profiling.flows.parameters import RewardProfilingParams as P\n"
        "given = P(output='r.jsonl', servers={'demo': True})\n"
        "flow.serialize_parameters({'params': given})\n"
        "print(sorted({'fastapi', 'sqlalchemy', 'uvicorn'} & sys.modules.keys()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
