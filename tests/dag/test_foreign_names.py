"""A working folder with files and packages of the user's own, named like ours."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.dag.living import COMMAND, Deployed, PrefectServer, Workers

NAMES = ("tasks", "flows", "deployments", "planning", "files", "report", "options")
FOREIGN = 'raise ImportError("a module of the user\'s own was imported")\n'
ON_FILES = (
    ("materialize", "--input", EMBEDDED_TASKS, "--output", "m/r.jsonl"),
    ("inspect", "first/r.jsonl"),
    ("profile", "--rollouts", "first/r.jsonl", "--insights"),
    ("report", "first/r.jsonl"),
    ("select", "--input", EMBEDDED_TASKS, "--rollouts", "first/r.jsonl",
     "--open-ends"),
    ("compare", "--baseline", "first/r.jsonl", "--candidate", "first/r.jsonl"),
    ("merge", "first/r.jsonl"),
)  # fmt: skip


def put_modules(folder: Path) -> None:
    for name in NAMES:
        (folder / f"{name}.py").write_text(FOREIGN)


def put_packages(folder: Path) -> None:
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(FOREIGN)


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, command_env: dict[str, str]
) -> Iterator[Deployed]:
    """Deploy in a folder of modules named like ours, on a server of its own."""
    server = PrefectServer(tmp_path_factory.mktemp("prefect"))
    folder = tmp_path_factory.mktemp("foreign")
    put_modules(folder)
    try:
        server.start()
        yield Deployed.on(server.api, folder, command_env, cwd=folder)
    finally:
        server.kill()


@pytest.fixture(scope="module")
def workers(place: Deployed) -> Iterator[Workers]:
    """Give a worker that runs in the same folder."""
    started = Workers(place)
    yield started
    started.kill()


def demo(place: Deployed, output: str) -> str:
    run = place.run("demo", plan={"num_repeats": 1}, output=output)
    return str(place.until(run, "Completed", "Failed", "Crashed", "Partial")["name"])


def test_a_worker_ignores_foreign_modules(place: Deployed, workers: Workers) -> None:
    workers.one()

    assert demo(place, "first/r.jsonl") == "Completed"


def test_a_deployment_survives_new_packages(place: Deployed, workers: Workers) -> None:
    workers.one()
    for name in NAMES:
        (place.folder / f"{name}.py").unlink()
    put_packages(place.folder)

    assert demo(place, "second/r.jsonl") == "Completed"


@pytest.mark.parametrize("line", ON_FILES, ids=lambda line: str(line[0]))
def test_file_commands_run_beside_them(
    place: Deployed, line: tuple[str | Path, ...]
) -> None:
    done = subprocess.run(
        [COMMAND, *line], cwd=place.folder, env=place.env,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_command_line_runs_do_too(place: Deployed) -> None:
    done = subprocess.run(
        [COMMAND, "demo", "--num-repeats", "1", "--output", "third/r.jsonl"],
        cwd=place.folder, env=place.env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    shutil.rmtree(place.folder / "third")
