"""Gym's health files, as its run leaves them beside a rollouts file."""

from pathlib import Path

import orjson
import pytest

from reward_profiling.errors import RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.reporting.gym_health import read_gym_health

FINDING = {"check": "agent_turn_hollow", "detail": "turn 2 is empty"}


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    run = {
        "verdicts": {"healthy": 3, "unhealthy": 1, "unobserved": 0},
        "issues": {"agent_turn_hollow": 1, "model_call_failed": 0},
    }
    files = RunFiles(tmp_path / "r.jsonl")
    files.quality_summary.write_bytes(orjson.dumps({"run": run, "tasks": {}}))
    verdicts = [
        {"rollout_id": "0-0", "verdict": "healthy", "findings": []},
        {"rollout_id": "0-1", "verdict": "unhealthy", "findings": [FINDING]},
    ]
    files.rollout_verdicts.write_bytes(b"\n".join(map(orjson.dumps, verdicts)))
    return files


def test_health_verdicts_are_counted(
    files: RunFiles,
) -> None:
    health = read_gym_health(files)

    assert health is not None
    assert health.verdicts == {"healthy": 3, "unhealthy": 1}
    assert health.issues == {"agent_turn_hollow": 1}
    assert health.unhealthy == (("0-1", "agent_turn_hollow: turn 2 is empty"),)


def test_an_unchecked_output_has_no_health(tmp_path: Path) -> None:
    assert read_gym_health(RunFiles(tmp_path / "r.jsonl")) is None


def test_a_summary_is_enough(files: RunFiles) -> None:
    files.rollout_verdicts.unlink()

    health = read_gym_health(files)

    assert health is not None
    assert health.unhealthy == ()


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"torn", b""])
def test_what_is_no_summary_is_named(files: RunFiles, content: bytes) -> None:
    files.quality_summary.write_bytes(content)

    with pytest.raises(RecordError, match=r"quality_summary.json:1: "):
        read_gym_health(files)
