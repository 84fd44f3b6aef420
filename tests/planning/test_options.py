from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pydantic import TypeAdapter

from reward_profiling.errors import ConfigError
from reward_profiling.planning.options import PlanOptions


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": 0}, r"^limit must be at least 1 \(got 0\)$"),
        ({"limit": -3}, r"^limit must be at least 1 \(got -3\)$"),
        ({"num_repeats": 0}, r"^num_repeats must be at least 1 \(got 0\)$"),
        (
            {"num_repeats": {"a": 0}},
            r"^num_repeats\['a'\] must be at least 1 \(got 0\)$",
        ),
        ({"num_repeats": {}}, "name an agent in it"),
        ({"fan_out": {"a": []}}, "at least one agent"),
        ({"fan_out": {"a": ["b", "b"]}}, "each once"),
        ({"agent_name": "a", "agent_map": {"_default": "b"}}, "differ"),
        ({"agent_name": "a", "default_agent": "b"}, "no effect"),
        ({"agent_map": {"_default": "a"}, "default_agent": "b"}, "no effect"),
        ({"num_repeat": 2}, "^num_repeat is not an option$"),
    ],
)
def test_contradictory_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PlanOptions.made(given)


def test_agent_name_is_the_default_route() -> None:
    options = PlanOptions(agent_name="x", agent_map={"a": "b"})

    assert options.routes() == {"a": "b", "_default": "x"}


def test_no_repeats_given_means_one() -> None:
    assert PlanOptions().num_repeats == 1
    assert PlanOptions(num_repeats=None).num_repeats is None
    assert PlanOptions.made({"num_repeats": "null"}).num_repeats is None
    assert PlanOptions.made({"agent_name": "null"}).agent_name == "null"


def test_options_cannot_be_changed() -> None:
    options = PlanOptions()

    with pytest.raises(FrozenInstanceError):
        options.limit = 3  # type: ignore[misc]


def test_every_option_is_documented() -> None:
    described = TypeAdapter(PlanOptions).json_schema()["properties"]

    assert len(described) > 10
    assert [n for n, field in described.items() if not field.get("description")] == []
