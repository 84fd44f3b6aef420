"""What it costs to collect one plan by each runner: start, processor, memory.

    python benchmarks/spreading.py threads dask ray work-pool --shards 2 --repeats 209

Everything is started here: a Prefect server with a home of its own, the embedded
environment, and two workers where the work pool is asked for. `--database-url` gives
the server another database than SQLite; `--batch` gives it the README's batch settings.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

COMMAND = Path(sys.executable).with_name("reward-profiling")
TASKS = Path(__file__).parents[1] / "reward_profiling" / "demo" / "tasks.jsonl"
TICK = os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
BATCH = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "100",
}
SETTINGS = {"slurm": {"execution_mode": "local"}}


class Cost(NamedTuple):
    """What one run took."""

    seconds: float
    first_record: float
    cpu: float
    server_cpu: float
    memory_mb: float


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(pid: int) -> list[int]:
    """Return a process and all that came from it."""
    found = [pid]
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = thread.read_text().split()
        except OSError:
            continue
        for child in children:
            found += family(int(child))
    return found


def memory_mb(pids: list[int]) -> float:
    """Return what processes hold in memory, shared pages counted in each."""
    total = 0.0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB
        except OSError:
            continue
    return total


def cpu_seconds(pids: list[int]) -> float:
    """Return the processor time of processes and of their children that ended."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICK


def own_children() -> float:
    """Return the processor time of children of this process that ended."""
    own = os.times()
    return own.children_user + own.children_system


@contextmanager
def started(line: list[str], env: dict[str, str], log: Path) -> Iterator[int]:
    """Run a process beside the block; yield its pid."""
    with (
        log.open("ab") as file,
        subprocess.Popen(
            line,
            env=env,
            cwd=log.parent,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
        ) as child,
    ):
        try:
            yield child.pid
        finally:
            child.terminate()


def wait_for(url: str) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(url)


def measured(
    line: list[str], env: dict[str, str], others: list[int], out: Path
) -> Cost:
    """Run a command; watch it, and `others`: the server first, then the workers."""
    server, workers = others[0], others[1:]
    before = cpu_seconds([server]), cpu_seconds(workers) + own_children()
    idle = memory_mb([pid for worker in workers for pid in family(worker)])
    peak, first, begun = 0.0, 0.0, time.monotonic()
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as child:  # fmt: skip
        said: list[str] = []
        assert child.stdout is not None
        reader = threading.Thread(target=lambda: said.extend(child.stdout or ()))
        reader.start()
        while child.poll() is None:
            time.sleep(0.1)
            now = family(child.pid) + [p for w in workers for p in family(w)]
            peak = max(peak, memory_mb(now) - idle)
            records = out.parent.glob("r*_timings.jsonl")
            if not first and any(path.stat().st_size for path in records):
                first = time.monotonic() - begun
        reader.join()
    seconds = time.monotonic() - begun
    assert child.returncode == 0, "".join(said)
    time.sleep(2.0)  # what the server still does for the run
    spent = cpu_seconds(workers) + own_children() - before[1]
    return Cost(
        seconds, first, spent,
        cpu_seconds([server]) - before[0], peak,
    )  # fmt: skip


def main() -> None:
    """Measure, and print a row for each runner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runners", nargs="+")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=209)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--database-url")
    parser.add_argument("--batch", action="store_true")
    given = parser.parse_args()
    port = free_port()
    api = f"http://127.0.0.1:{port}/api"
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        home = Path(name)
        env = {k: v for k, v in os.environ.items() if "PREFECT" not in k} | {
            "HOME": name, "PREFECT_HOME": name, "PREFECT_API_URL": api,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1",
        } | (BATCH if given.batch else {})  # fmt: skip
        if given.database_url:
            env["PREFECT_API_DATABASE_CONNECTION_URL"] = given.database_url
        prefect = [sys.executable, "-P", "-m", "prefect"]
        line = [*prefect, "server", "start", "--port", str(port)]
        others = [stack.enter_context(started(line, env, home / "server.log"))]
        wait_for(f"{api}/health")
        line = [sys.executable, "-m", "reward_profiling.demo", "--latency-scale", "0.2"]
        stack.enter_context(started(line, env, home / "demo.log"))
        while not (
            found := re.search(r"http://[\d.:]+", (home / "demo.log").read_text())
        ):
            time.sleep(0.1)
        if "work-pool" in given.runners:
            subprocess.run([COMMAND, "deploy"], env=env, cwd=home, check=True,
                           capture_output=True)  # fmt: skip
            line = [*prefect, "worker", "start", "--pool", "reward-profiling",
                    "--type", "process"]  # fmt: skip
            others += [
                stack.enter_context(started(line, env, home / "w.log"))
                for _ in range(2)
            ]
            time.sleep(8)
        print("runner      seconds  first record  CPU  server CPU  memory MB")
        for runner in given.runners:
            out = home / runner / "r.jsonl"
            line = [
                str(COMMAND), "run", "--input", str(TASKS), "--head-url", found[0],
                "--output", str(out), "--num-repeats", str(given.repeats),
                "--num-shards", str(given.shards), "--runner", runner,
                "--concurrency", str(given.concurrency),
                *(["--runner-settings", json.dumps(SETTINGS[runner])]
                  if runner in SETTINGS else []),
            ]  # fmt: skip
            cost = measured(line, env, others, out)
            print(
                f"{runner:10} {cost.seconds:8.1f} {cost.first_record:13.1f}"
                f" {cost.cpu:5.1f} {cost.server_cpu:10.1f}"
                f" {cost.memory_mb:10.0f}"
            )


if __name__ == "__main__":
    main()
