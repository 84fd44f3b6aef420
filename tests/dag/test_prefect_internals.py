"""Another Prefect may lack what is private: that is said, and done without."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.tasks.shared.prefect_internals import (
    DISPENSABLE,
    NEEDED,
    SERVER,
    check_prefect,
    done_without,
    found,
)

Run = Callable[..., subprocess.CompletedProcess[str]]
ABSENT = {"prefect.context:NoSuchContext": "tells something"}
WITHOUT = """
import sys
from reward_profiling.tasks.shared import prefect_internals as internals

there, lacking = internals.found, {*internals.DISPENSABLE, internals.SERVER}
internals.found = lambda path: None if path in lacking else there(path)

from reward_profiling.cli.app import run

sys.exit(run(sys.argv[1:]))
"""
UNFIT = """
import sys
import prefect.exceptions, prefect.flow_engine

del prefect.exceptions.Pause

from reward_profiling.cli.app import run

sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def run_demo(command_env: dict[str, str], tmp_path: Path) -> Run:
    """Give a way to run the embedded environment with another Prefect."""

    def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
        line = ["demo", "--output", "d/r.jsonl", "--num-repeats", "1"]
        return subprocess.run(
            [sys.executable, "-c", code, *line],
            cwd=tmp_path, env={**command_env, **env}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    return run


def test_the_installed_prefect_is_complete() -> None:
    assert all(found(path) for path in (*NEEDED, *DISPENSABLE, SERVER))
    check_prefect()
    assert done_without() == []


def test_a_needed_missing_part_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"lacks prefect\.context:NoSuch\w+, which"):
        check_prefect(ABSENT)


def test_an_unneeded_missing_part_is_told() -> None:
    (said,) = done_without(ABSENT)

    assert said.endswith(" lacks prefect.context:NoSuchContext: tells something")


@pytest.mark.parametrize("path", ["no_such_module:x", "os:no_such_name", "os:path.no"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert found(path) is None
    assert found("os:path.join") is os.path.join


def test_a_run_does_without_what_it_can(
    run_demo: Run, api_url: str, tmp_path: Path
) -> None:
    done = run_demo(WITHOUT, PREFECT_API_URL=api_url)

    assert done.returncode == 0, done.stderr
    assert "24 of 24 rollouts collected" in done.stdout
    assert (tmp_path / "d" / "r.jsonl").read_bytes().count(b"\n") == 24
    for path, cost in DISPENSABLE.items():
        assert f" lacks {path}: {cost}" in done.stderr


def test_an_unfit_prefect_is_refused_first(run_demo: Run, tmp_path: Path) -> None:
    done = run_demo(UNFIT)

    assert done.returncode == 2
    assert "lacks prefect.exceptions:Pause, which says that a run was" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
