import os
import socket
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.starting.gym_command import (
    check_gym,
    ended_server,
    gym_arguments,
    gym_environment,
    gym_executable,
    head_port,
    is_start_of,
    port_holder,
    private_folder,
    server_log,
)


@pytest.fixture
def gym(tmp_path: Path) -> Path:
    path = tmp_path / "venv" / "bin" / "gym"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def options(**given: object) -> ServerOptions:
    return ServerOptions.made({"gym_config": ("a.yaml",), **given})


# Where it is.


def test_the_command_is_found_on_its_path(
    gym: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(gym.parent))

    assert gym_executable(options()) == str(gym)
    assert gym_executable(options(gym_command=str(gym))) == str(gym)


def test_an_environment_is_named_by_folder(
    gym: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gym.parents[2])

    assert gym_executable(options(gym_venv="venv")) == str(gym)


def test_what_is_no_command_is_refused(gym: Path) -> None:
    gym.chmod(0o644)

    with pytest.raises(ConfigError, match="give its virtual environment with --gym-v"):
        check_gym(options(gym_command=str(gym)))
    with pytest.raises(ConfigError, match=r"--gym-venv: .*/gym cannot be run"):
        check_gym(options(gym_venv=str(gym.parents[1])))


# How it is called.


def test_a_default_key_can_be_overridden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODEL_API_KEY", raising=False)

    with private_folder(tmp_path / "logs") as private:
        command = gym_arguments(options(), "gym", 1, private)
        assert private.defaults.read_text() == "policy_api_key: none\n"

    assert command[3:7] == ["--config", str(private.defaults), "--config", "a.yaml"]
    assert not any("policy_api_key" in argument for argument in command)


def test_a_key_is_given_only_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "planted")

    with private_folder(tmp_path / "logs") as private:
        command = gym_arguments(options(), "gym", 1, private)

    assert "++policy_api_key=${oc.env:MODEL_API_KEY}" in command
    assert str(private.defaults) not in command


def test_a_given_port_is_given_once(tmp_path: Path) -> None:
    given = options(gym_overrides=("++head_server.port=1234",))

    with private_folder(tmp_path / "logs") as private:
        command = gym_arguments(given, "gym", 1234, private)

    assert head_port(given) == 1234
    assert head_port(options()) is None
    assert [one for one in command if "port" in one] == ["++head_server.port=1234"]


def test_it_has_its_own_neighbours_and_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", "of another")
    monkeypatch.delenv("RAY_TMPDIR", raising=False)

    environment = gym_environment("/venv/bin/gym", tmp_path)

    assert environment["PATH"] == f"/venv/bin:{os.environ['PATH']}"
    assert environment["RAY_TMPDIR"] == str(tmp_path)
    assert "NEMO_GYM_CONFIG_DICT" not in environment

    monkeypatch.setenv("RAY_TMPDIR", "/mine")
    assert gym_environment("/venv/bin/gym", tmp_path)["RAY_TMPDIR"] == "/mine"


def test_the_folder_is_the_users_alone(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "a folder" / "r_server_logs"

    with private_folder(logs) as private:
        (private.logs / "math.log").write_text("said")
        assert private.path.stat().st_mode & 0o777 == 0o700
        assert len(str(private.path)) < 20

    assert not private.path.exists()
    assert server_log(logs, "math").read_text() == "said"
    assert logs.stat().st_mode & 0o777 == 0o700


# What is known of it.


def test_the_log_names_the_ended_server() -> None:
    log = "…\nRuntimeError: Process `math` finished unexpectedly!\nSending interrupt\n"

    assert ended_server(log) == "math"
    assert ended_server("Process finished") is None


def test_who_holds_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port_holder(port)).startswith(f"pid {os.getpid()} (")

    assert port_holder(port) is None


def test_a_head_server_is_known_by_its_folder(
    tmp_path: Path,
) -> None:
    with (
        private_folder(tmp_path / "logs") as mine,
        private_folder(tmp_path / "logs") as other,
    ):
        assert is_start_of(options(), mine, {"nemo_gym_log_dir": str(mine.logs)})
        assert not is_start_of(options(), mine, {"nemo_gym_log_dir": str(other.logs)})
        assert not is_start_of(options(), mine, {})
        moved = options(gym_overrides=("++nemo_gym_log_dir=mine",))
        assert is_start_of(moved, mine, {"nemo_gym_log_dir": "mine"})
