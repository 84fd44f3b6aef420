"""The run that Prefect's cost is measured on, with and without it, and its servers.

A plan of some rollouts, 8 of a task, 64 in flight, 0.1 s and 20 KB each, against the
stub server.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

HERE = Path(__file__).parent
TOOL = str(Path(sys.executable).with_name("reward-profiling"))
STUB_PORT, PREFECT_PORT = 18_556, 18_558
API = f"http://127.0.0.1:{PREFECT_PORT}/api"
SECONDS, SIZE, IN_FLIGHT, REPEATS = 0.1, 20_000, 64, 8
START_SECONDS = 120.0


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment with an empty home and no settings of Prefect's."""
    kept = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {**kept, **quiet, "HOME": str(home), "PREFECT_HOME": str(home), **more}


@contextmanager
def stub(processor: int = 0) -> Iterator[str]:
    """Serve the stub's rollouts from one processor; yields the address."""
    if processor not in os.sched_getaffinity(0):
        sys.exit(f"this needs processor {processor}, which is not there")
    port = STUB_PORT + processor
    line = [str(HERE / "stub_server.py"), str(port), str(SECONDS), str(SIZE)]
    child = subprocess.Popen([sys.executable, *line])
    os.sched_setaffinity(child.pid, {processor})
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()


@contextmanager
def prefect_server(home: Path) -> Iterator[int]:
    """Run a Prefect server; yields its pid."""
    line = [sys.executable, "-m", "prefect", "server", "start"]
    child = subprocess.Popen(
        [*line, "--port", str(PREFECT_PORT)],
        env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                if httpx.get(f"{API}/health", trust_env=False).is_success:
                    break
            time.sleep(0.2)
        yield child.pid
    finally:
        os.killpg(child.pid, 9)
        child.wait()


def processor_seconds(pid: int) -> float:
    """Return what a running process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(line: list[str], folder: Path, env: Mapping[str, str]) -> float:
    """Run a command; return its processor seconds."""
    child = subprocess.Popen(
        line, cwd=folder, env=dict(env),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"failed: {' '.join(line)}")
    return usage.ru_utime + usage.ru_stime


def write_tasks(folder: Path, count: int) -> None:
    """Write the tasks of `count` rollouts, in rows of about 1.7 KB."""
    row = {"agent_ref": {"name": "stub_agent"}}
    with (folder / f"{count}.jsonl").open("w") as file:
        for index in range(max(1, count // REPEATS)):
            message = {"role": "user", "content": f"question {index} " + "x" * 1500}
            params = {"input": [message]}
            file.write(json.dumps({**row, "responses_create_params": params}) + "\n")


def plain_line(count: int, output: str, head: str) -> list[str]:
    """Return the steps of `count` rollouts without Prefect, for the interpreter."""
    given = [f"{count}.jsonl", output, head, str(IN_FLIGHT), str(min(count, REPEATS))]
    return [str(HERE / "plain_run.py"), *given]


def run_line(count: int, output: str, head: str) -> list[str]:
    """Return the arguments of a run of `count` rollouts."""
    return [
        "run", "--input", f"{count}.jsonl", "--num-repeats", str(min(count, REPEATS)),
        "--output", output, "--head-url", head, "--concurrency", str(IN_FLIGHT),
    ]  # fmt: skip


def unused(stem: str, folder: Path) -> str:
    """Return the name of a folder that is not there yet."""
    number = sum(1 for _ in folder.glob(f"{stem}-*"))
    (folder / f"{stem}-{number}").mkdir()
    return f"{stem}-{number}"
