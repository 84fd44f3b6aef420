"""The wheel, installed where no checkout is: what it holds, and that it works."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

from tests.dag.living import Deployed, PrefectServer

ROOT = Path(__file__).parents[1]
# Not every environment has a pip of its own; that of the interpreter serves it, too.
PIP = sys.executable if find_spec("pip") else str(Path(sys.base_prefix, "bin/python3"))
FOREIGN = ("deployments", "flows", "tasks")
WHERE = """
import importlib.metadata, sys
from prefect.flows import load_flow_from_entrypoint
import reward_profiling
from reward_profiling import deployments, flows, tasks
print(deployments.__file__, flows.__file__, tasks.__file__, sep="\\n")
print(importlib.metadata.distribution("gym-reward-profiling").locate_file(""))
for entrypoint in sys.argv[1:]:
    print(load_flow_from_entrypoint(entrypoint).name)
"""


class Installed(NamedTuple):
    """An environment with the wheel, and the third parties' packages of this one."""

    wheel: Path
    folder: Path
    empty: Path
    """A folder without a checkout, in which commands run."""
    env: dict[str, str]

    def run(self, *line: str | Path) -> subprocess.CompletedProcess[str]:
        program, *rest = map(str, line)
        return subprocess.run(
            [self.folder / "bin" / program, *rest],
            cwd=self.empty, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    def output_of(self, *line: str | Path) -> str:
        done = self.run(*line)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, command_env: dict[str, str]
) -> Installed:
    """Build the wheel, and install it into an environment of its own."""
    built, folder, empty = map(tmp_path_factory.mktemp, ("wheel", "venv", "empty"))
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, ROOT)
    _pip("--python", sys.executable, *build)
    (wheel,) = built.glob("gym_reward_profiling-*.whl")
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in FOREIGN:
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("OWNER = 'the user'\n")
    _pip("--python", python, "install", "--no-deps", wheel)
    # A line of a .pth names a folder whose own .pth files, such as that of an editable
    # installation, are not read: the checkout stays out.
    (packages / "third-parties.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {name: value for name, value in command_env.items() if name != "PYTHONPATH"}
    return Installed(wheel, folder, empty, env)


def _pip(*line: str | Path) -> None:
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [PIP, "-m", "pip", *map(str, line)],
        env=offline, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_just_the_packages(
    installed: Installed,
) -> None:
    files = {
        Path(folder, name).relative_to(ROOT).as_posix(): Path(folder, name).read_bytes()
        for folder, _, names in os.walk(ROOT / "reward_profiling", followlinks=True)
        for name in names
        if "__pycache__" not in Path(folder).parts
    }
    with ZipFile(installed.wheel) as wheel:
        held = {
            name: wheel.read(name)
            for name in wheel.namelist()
            if ".dist-info/" not in name
        }

    assert sorted(held) == sorted(files)
    assert [name for name in held if held[name] != files[name]] == []
    for name in ("deployments/prefect.yaml", "demo/tasks.jsonl",
                 "numerics/student_t.f64",
                 "reporting/template/page.html",
                 "reporting/template/vendor/d3.min.js",
                 "reporting/template/vendor/LICENSES.txt"):  # fmt: skip
        assert held[f"reward_profiling/{name}"]


def test_what_runs_is_the_wheel(
    installed: Installed,
) -> None:
    entrypoints = ("reward_profiling.flows.reward_profiling.reward_profiling",
                   "reward_profiling.flows.shard_run.shard_run")  # fmt: skip

    *where, first, second = installed.output_of(
        "python", "-P", "-c", WHERE, *entrypoints
    ).splitlines()

    assert (first, second) == ("reward-profiling", "collect-shard")
    for place in where:
        assert Path(place).is_relative_to(installed.folder)
        assert not Path(place).is_relative_to(ROOT)


def test_it_leaves_user_packages_alone(installed: Installed) -> None:
    names = ", ".join(FOREIGN)
    code = f"import {names}; print([one.OWNER for one in ({names})])"

    assert installed.output_of("python", "-c", code) == f"{['the user'] * 3}\n"


def test_the_command_works_in_an_empty_folder(
    installed: Installed,
) -> None:
    plan, records = [], []
    for task in range(6):
        for repeat in range(4):
            row: dict[str, Any] = {
                "_ng_task_index": task, "_ng_rollout_index": repeat,
                "responses_create_params": {"input": f"task {task}"},
                "agent_ref": {"name": "math"},
            }  # fmt: skip
            plan.append(row)
            records.append(
                {**row, "reward": float(repeat <= task), "response": {"output": []}}
            )
    for name, rows in (("r_materialized_inputs.jsonl", plan), ("r.jsonl", records)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (installed.empty / name).write_text(lines)

    assert "materialize" in installed.output_of("reward-profiling", "--help")
    profiled = installed.output_of(
        "reward-profiling", "profile", "--rollouts", "r.jsonl", "--insights"
    )
    installed.output_of("reward-profiling", "report", "r.jsonl")

    assert profiled.startswith("24 of 24 rollouts collected; mean reward 0.750 (n=6 ta")
    page = (installed.empty / "r_report.html").read_text()
    for part in ("page.css", "charts.js", "vendor/d3.min.js", "vendor/plot.umd.min.js"):
        text = (ROOT / "reward_profiling/reporting/template" / part).read_text()
        assert text.strip()[-200:] in page
    profile = (installed.empty / "r_reward_profiling.jsonl").read_text()
    assert profile.count("\n") == 6


@pytest.fixture(scope="module")
def registered(
    installed: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Deployed, str]]:
    """Have the wheel register everything on a server of its own; give what it said."""
    server = PrefectServer(tmp_path_factory.mktemp("prefect"))
    folder = tmp_path_factory.mktemp("runs")
    env = {
        **installed.env, "PREFECT_API_URL": server.api, "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
    }  # fmt: skip
    try:
        server.start()
        there = installed._replace(env=env)
        said = there.output_of("reward-profiling", "deploy", "--folder", folder)
        yield Deployed(server.api, folder, env), said
    finally:
        server.kill()


@pytest.fixture
def worker(
    installed: Installed, registered: tuple[Deployed, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Give the wheel's own worker, and its words in `worker.log`."""
    deployed, _ = registered
    with (
        (deployed.folder / "worker.log").open("wb") as log,
        subprocess.Popen(
            [str(installed.folder / "bin/reward-profiling"), "worker"],
            cwd=installed.empty, env=deployed.env, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        ) as child,
    ):  # fmt: skip
        yield child
        os.killpg(child.pid, signal.SIGKILL)


def test_deploy_registers_and_lists_all(
    registered: tuple[Deployed, str],
) -> None:
    deployed, said = registered

    known = deployed.post("deployments/filter", {}).json()
    automations = deployed.post("automations/filter", {}).json()

    assert {one["name"] for one in known} == {
        "demo", "nightly", "on-demand", "collect-shard",
    }  # fmt: skip
    assert len(automations) == 3
    for one in (*known, *automations):
        assert f"  {one['name']}" in said
    for one in known:
        assert one["id"] in said


def test_its_worker_runs_the_demo(
    registered: tuple[Deployed, str], worker: subprocess.Popen[bytes]
) -> None:
    deployed, _ = registered

    run = deployed.run("demo", plan={"num_repeats": 1}, output="demo/r.jsonl")
    state = deployed.until(run, "Completed", "Failed", "Crashed", "Partial")

    log = (deployed.folder / "worker.log").read_text()
    assert state["name"] == "Completed", log
    assert worker.poll() is None
    assert (deployed.folder / "demo/r.jsonl").read_bytes().count(b"\n") == 24
    assert (deployed.folder / "demo/r_report.html").exists()
