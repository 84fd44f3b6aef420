"""What is deployed, as it is written: files and automations, without a server."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import yaml
from prefect.flows import load_flow_from_entrypoint

from reward_profiling.deployments.automations import (
    CHOSEN_STATE,
    MAX_RESTARTS,
    automations,
)
from reward_profiling.deployments.registering import PREFECT_FILE
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.reporting.outcome import (
    EVENTS,
    INTERRUPTED_STATE,
    RUN_TAG,
    SHARD_TAG,
)

FILE = PREFECT_FILE
DEPLOYED: list[dict[str, Any]] = yaml.safe_load(FILE.read_text())["deployments"]
PROFILING = [one for one in DEPLOYED if RUN_TAG in one["tags"]]


@pytest.mark.parametrize("deployed", DEPLOYED, ids=lambda one: str(one["name"]))
def test_an_entrypoint_leads_to_a_flow(deployed: dict[str, Any]) -> None:
    assert "/" not in deployed["entrypoint"]
    assert load_flow_from_entrypoint(deployed["entrypoint"]).name


@pytest.mark.parametrize("deployed", PROFILING, ids=lambda one: str(one["name"]))
def test_each_run_has_an_output_folder(
    deployed: dict[str, Any],
) -> None:
    params = RewardProfilingParams.made(deployed["parameters"]["params"])

    assert "{date}" in str(params.output)
    assert deployed["description"]
    assert deployed["work_pool"]["name"] == "reward-profiling"
    env = deployed["work_pool"]["job_variables"]["env"]
    assert env == {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}


def test_there_are_three_deployments() -> None:
    assert [one["name"] for one in PROFILING] == ["demo", "nightly", "on-demand"]
    scheduled = [one["name"] for one in DEPLOYED if one.get("schedules")]
    assert scheduled == ["nightly"]
    for one in PROFILING[:2]:
        assert one["concurrency_limit"]["collision_strategy"] == "CANCEL_NEW"


def triggers() -> Iterator[tuple[str, Any]]:
    for automation in automations(uuid4()):
        yield automation.name, automation.trigger


def test_automations_watch_only_our_runs() -> None:
    for name, trigger in triggers():
        text = trigger.model_dump_json()
        about = (
            f"prefect.tag.{RUN_TAG}" if "webhook" not in name else "reward-profiling."
        )
        assert about in text, name


def test_a_silent_shard_is_left_to_its_run() -> None:
    (shard,) = [one for one in DEPLOYED if one["name"] == "collect-shard"]
    watched = {
        name
        for name, trigger in triggers()
        if f'"prefect.tag.{SHARD_TAG}"' in trigger.model_dump_json()
    }

    assert shard["tags"] == [SHARD_TAG]
    assert watched == {"reward-profiling: a silent run has crashed"}


def test_restarts_of_a_run_are_bounded() -> None:
    (chosen,) = [t for _, t in triggers() if "prefect.flow-run.Running" in t.after]
    (again,) = [
        t for _, t in triggers() if f"prefect.flow-run.{CHOSEN_STATE}" in t.after
    ]

    assert chosen.match["prefect.run-count"] == ["1", "2", "3"][:MAX_RESTARTS]
    assert f"prefect.flow-run.{INTERRUPTED_STATE}" in chosen.expect
    for trigger in (chosen, again):
        assert "prefect.resource.role" in trigger.model_dump_json()
        assert '"deployment"' in trigger.model_dump_json()


def test_the_webhook_hears_only_of_trouble() -> None:
    (told,) = [trigger for name, trigger in triggers() if "webhook" in name]

    assert told.expect == set(EVENTS) - {
        "reward-profiling.completed", "reward-profiling.cancelled",
    }  # fmt: skip
    assert len(list(automations(None))) == len(list(automations(uuid4()))) - 1
