"""The manifest of an output: what it keeps, and what is refused of a damaged one."""

from pathlib import Path

import orjson
import pytest

from reward_profiling.errors import RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import (
    is_planned,
    materialize,
    refuse_change,
)
from reward_profiling.planning.on_disk.run_manifest import (
    known_model,
    mark_adaptive,
    read_manifest,
    remember_model,
    sound_manifest,
)
from reward_profiling.planning.options import PlanOptions
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


def test_a_growing_plan_keeps_its_model(files: RunFiles, tmp_path: Path) -> None:
    checked = check_input(tmp_path / "in.jsonl", PlanOptions(num_repeats=2))

    materialize(checked, files)

    assert known_model(files) == "m1"
    assert orjson.loads(files.run.read_bytes())["plan"]["num_rollouts"] == 2


@pytest.mark.parametrize(
    ("given", "known"),
    [("m1", "m1"), ("${policy}", None), (None, None), ("", None), (7, None)],
)
def test_the_configuration_names_the_model(given: object, known: str | None) -> None:
    agent: dict[str, object] = {"responses_api_agents": {"simple": {}}}

    assert Servers({"a": agent, "policy_model_name": given}).policy_model == known


def test_no_manifest_reads_as_an_empty_one(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")

    found = read_manifest(files)

    assert (found.policy_model, found.output, found.is_adaptive) == (None, None, False)
    assert found.settings == {}
    mark_adaptive(files, 5)
    assert not files.run.exists()


def test_younger_members_are_kept(files: RunFiles) -> None:
    members = orjson.loads(files.run.read_bytes())
    files.run.write_bytes(orjson.dumps({"younger": [1], **members}))

    remember_model(files, "m2")
    mark_adaptive(files, 7)

    found = orjson.loads(files.run.read_bytes())
    plan = {**members["plan"], "num_rollouts": 7}
    assert found == {
        "younger": [1], **members, "policy_model_name": "m2", "adaptive": True,
        "plan": plan,
    }  # fmt: skip
    assert list(found)[-1] == "adaptive"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_manifest_is_named(
    files: RunFiles, tmp_path: Path, content: bytes
) -> None:
    files.run.write_bytes(content)
    checked = check_input(tmp_path / "in.jsonl", PlanOptions())

    with pytest.raises(RecordError, match=r"r_run\.json:1: is not .*`materialize`"):
        known_model(files)
    materialize(checked, files)
    assert files.run.with_name("r_run.json.damaged").read_bytes() == content
    assert known_model(files) is None


def test_settings_must_be_an_object(files: RunFiles) -> None:
    files.run.write_bytes(b'{"settings":[]}')

    with pytest.raises(RecordError, match=r"r_run\.json: settings is not an object"):
        _ = read_manifest(files).settings


def test_a_damaged_manifest_stops_no_look(files: RunFiles, tmp_path: Path) -> None:
    files.run.write_bytes(b"{")
    checked = check_input(tmp_path / "in.jsonl", PlanOptions())

    assert sound_manifest(files).members == {}
    assert is_planned(checked, files)
    refuse_change(checked, files)
