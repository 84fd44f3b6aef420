"""One output holds the rollouts of one model."""

import re
from pathlib import Path

import orjson
import pytest

from reward_profiling.errors import ConfigError, PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.on_disk.run_manifest import known_model, remember_model
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_changes import refuse_other_model
from reward_profiling.servers.routes import Servers

ROW = b'{"responses_create_params":{"input":"a"},"agent_ref":{"name":"x"}}\n'


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output whose rollouts came from the model m1."""
    files = RunFiles(tmp_path / "r.jsonl")
    (tmp_path / "in.jsonl").write_bytes(ROW)
    materialize(check_input(tmp_path / "in.jsonl", PlanOptions()), files)
    remember_model(files, "m1")
    files.rollouts.write_bytes(b"paid for")
    return files


def test_another_model_is_refused_with_both_names(files: RunFiles) -> None:
    with pytest.raises(PlanChangedError, match="policy_model_name: m1 → m2"):
        refuse_other_model(files, "m2")


@pytest.mark.parametrize("model", ["m1", None])
def test_the_same_model_and_one_that_is_not_known_go_on(
    files: RunFiles, model: str | None
) -> None:
    refuse_other_model(files, model)


def test_an_output_without_rollouts_takes_any_model(files: RunFiles) -> None:
    files.rollouts.unlink()

    refuse_other_model(files, "m2")


def test_the_model_is_kept_when_the_plan_grows(files: RunFiles, tmp_path: Path) -> None:
    checked = check_input(tmp_path / "in.jsonl", PlanOptions(num_repeats=2))

    materialize(checked, files)

    assert known_model(files) == "m1"
    assert orjson.loads(files.run.read_bytes())["plan"]["num_rollouts"] == 2


@pytest.mark.parametrize(
    ("given", "known"),
    [("m1", "m1"), ("${policy}", None), (None, None), ("", None), (7, None)],
)
def test_the_model_is_what_the_configuration_names(
    given: object, known: str | None
) -> None:
    agent: dict[str, object] = {"responses_api_agents": {"simple": {}}}

    assert Servers({"a": agent, "policy_model_name": given}).policy_model == known


def test_an_output_that_shares_the_stem_of_another_is_refused(
    files: RunFiles, tmp_path: Path
) -> None:
    checked = check_input(tmp_path / "in.jsonl", PlanOptions())

    with pytest.raises(ConfigError, match=f"output {re.escape(files.rollouts.name)}"):
        materialize(checked, RunFiles(tmp_path / "r.v2"))
