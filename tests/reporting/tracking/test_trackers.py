"""Real trackers, offline; each test is left out where its package is not installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.reporting.tracking.mlflow_tracker import log_to_mlflow
from reward_profiling.reporting.tracking.tracked_run import TrackedRun
from reward_profiling.reporting.tracking.wandb_tracker import log_to_wandb


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrackedRun:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "r_insights.json"
    file.write_text("{}")
    return TrackedRun(
        name="monday night", project="profiles", settings={"pass_threshold": "1.0"},
        metrics={"reward/macro_mean": 0.5, "a (b)/tasks/never": 3}, files=(str(file),),
    )  # fmt: skip


@pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is an extra")
@pytest.mark.filterwarnings("default")
def test_weights_and_biases_runs_offline(
    run: TrackedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")

    where = log_to_wandb(run)

    (stored,) = tmp_path.rglob("run-*.wandb")
    assert "wandb" in where
    content = stored.read_bytes()
    assert b"reward/macro_mean" in content
    assert b"r_insights.json" in content


@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is an extra")
@pytest.mark.filterwarnings("default")
def test_mlflow_writes_to_a_local_store(
    run: TrackedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'runs.db'}")

    where = log_to_mlflow(run)

    found = import_module("mlflow").get_run(where.split()[0])
    assert found.data.metrics == {
        "reward/macro_mean": 0.5, "a -b-/tasks/never": 3.0,
    }  # fmt: skip
    assert found.data.params == {"pass_threshold": "1.0"}
    assert list(tmp_path.rglob("artifacts/r_insights.json"))


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_a_missing_tracker_names_its_extra(
    run: TrackedRun,
) -> None:
    with pytest.raises(ConfigError, match=r"gym-reward-profiling\[wandb\]"):
        log_to_wandb(run)


@pytest.mark.skipif(find_spec("mlflow") is not None, reason="mlflow is installed")
def test_another_too(run: TrackedRun) -> None:
    with pytest.raises(ConfigError, match=r"gym-reward-profiling\[mlflow\]"):
        log_to_mlflow(run)
