"""What a machine lets its runs start and write."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.servers.allow_lists import check_command, check_output

COMMANDS = "REWARD_PROFILING_ALLOWED_COMMANDS"
VENVS = "REWARD_PROFILING_ALLOWED_VENVS"
OUTPUTS = "REWARD_PROFILING_ALLOWED_OUTPUTS"
ROW = '{"responses_create_params":{"input":[]},"agent_ref":{"name":"a"}}\n'
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def gym(tmp_path: Path) -> Path:
    """Give a command in a virtual environment, which notes that it was started."""
    path = tmp_path / "venv/bin/gym"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    path.chmod(0o755)
    return path


def test_without_lists_everything_is_allowed(gym: Path) -> None:
    check_command(str(gym), {})
    check_output(gym, {})


def test_listed_commands_may_be_started(gym: Path) -> None:
    check_command(str(gym), {COMMANDS: f"/bin/true:{gym}"})
    check_command(str(gym), {VENVS: str(gym.parent.parent)})
    check_command(str(gym), {COMMANDS: "/bin/true", VENVS: str(gym.parent.parent)})


@pytest.mark.parametrize(
    "lists", [{COMMANDS: ""}, {VENVS: ""}, {COMMANDS: "/bin/true"}, {VENVS: "/opt"}]
)
def test_others_may_not(gym: Path, lists: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="may not be started on this machine"):
        check_command(str(gym), lists)


def test_a_link_is_followed_first(gym: Path, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "gym").symlink_to("/bin/true")
    (tmp_path / "out").symlink_to("/etc")

    with pytest.raises(ConfigError):
        check_command(str(allowed / "gym"), {COMMANDS: str(gym)})
    with pytest.raises(ConfigError, match=r"/etc/r.jsonl may not be written"):
        check_output(tmp_path / "out/r.jsonl", {OUTPUTS: str(tmp_path)})


@pytest.mark.parametrize(
    ("output", "is_allowed"),
    [
        ("data/r.jsonl", True),
        ("data/deep/er/r.jsonl", True),
        ("data/../r.jsonl", False),
        ("database/r.jsonl", False),
        ("/etc/r.jsonl", False),
    ],
)
def test_outputs_lie_in_listed_folders(
    tmp_path: Path, output: str, *, is_allowed: bool
) -> None:
    lists = {OUTPUTS: f"{tmp_path}/data:{tmp_path}/more"}
    if is_allowed:
        check_output(tmp_path / output, lists)
    else:
        with pytest.raises(ConfigError, match=f"{OUTPUTS} lists"):
            check_output(tmp_path / output, lists)


def test_a_run_starts_nothing_else(command: Run, gym: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(ROW)
    line = ["run", "--input", "tasks.jsonl", "--output", "r.jsonl",
            "--gym-config", "a.yaml", "--gym-command", str(gym)]  # fmt: skip

    done = command(*line, **{COMMANDS: sys.executable})

    assert done.returncode == 2
    assert "may not be started on this machine" in " ".join(done.stderr.split())
    assert not (tmp_path / "started").exists()


def test_a_run_writes_nowhere_else(command: Run, tmp_path: Path) -> None:
    done = command("run", "--demo", "--output", "r.jsonl", **{OUTPUTS: os.devnull})

    assert done.returncode == 2
    assert "may not be written on this machine" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []
