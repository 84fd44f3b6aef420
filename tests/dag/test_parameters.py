"""The form that Prefect makes of the parameters, and what it refuses."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema

from flows.parameters import RewardProfilingParams
from flows.reward_profiling import reward_profiling
from flows.run_name import sentence

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


def test_every_field_of_the_form_is_named_and_documented(
    definitions: dict[str, dict[str, Any]],
) -> None:
    listed = dict(fields(definitions))

    assert len(listed) > 25
    assert [n for n, field in listed.items() if not field.get("description")] == []
    # A nested model is named by its own title.
    unnamed = [n for n, f in listed.items() if not f.get("title") and "$ref" not in f]
    assert unnamed == []


def test_what_is_not_required_has_a_default(
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
    "wrong",
    [
        {"plan": {"num_repeats": 0}},
        {"plan": {"limit": 0}},
        {"plan": {"unknown": 1}},
        {"collect": {"concurrency": 0}},
        {"collect": {"retries": -1}},
        {"servers": {}},
        {"servers": {"demo": True, "head_url": "http://h"}},
        {"servers": {"head_url": "http://h"}},
        {"profile": {"pass_threshold": "high"}},
    ],
)
def test_what_the_form_would_send_wrong_is_refused(wrong: dict[str, Any]) -> None:
    given = {"output": "r.jsonl", "servers": DEMO, **wrong}

    with pytest.raises(ParameterTypeError):
        reward_profiling.validate_parameters({"params": given})


def test_the_form_sends_what_the_command_line_sends() -> None:
    given = {"output": "r.jsonl", "servers": DEMO, "plan": {"num_repeats": {"a": 2}}}

    params = reward_profiling.validate_parameters({"params": given})["params"]

    assert isinstance(params, RewardProfilingParams)
    assert sentence(params) == "repeats by agent of tasks into r.jsonl"
    assert params.output == Path("r.jsonl")
