"""What Prefect adds to a run: processor time, task runs, and time to the first request.

    python benchmarks/orchestration.py [--rollouts N] [--instructions]

A plan of N rollouts (5,000), 8 of a task, 64 in flight, 0.1 s and 20 KB each, against
the stub server: once by the functions that the steps call (plain_run.py), once by
`run`, reporting to a Prefect server that is started for it. A run of one rollout gives
the cost of starting; what is above it grows with the rollouts. Then the time from the
command to its first request, beside a flow of Prefect's with one empty step: with that
server, and with the temporary one that Prefect starts by itself.

On a machine with other work the seconds differ by more than Prefect adds. With
--instructions, what is executed is counted instead, by valgrind, thread by thread: it
hardly differs from time to time. A run takes fifty times as long as by itself, twenty
minutes in all, so that what it does by the clock counts fifty times: the progress that
it reports, its sign of life, and most of what Prefect's own threads do. The
share is at most what is said, and processes that watch over a run are left out.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx

HERE = Path(__file__).parent
TOOL = str(Path(sys.executable).with_name("reward-profiling"))
STUB_PORT, PREFECT_PORT = 18_556, 18_557
HEAD = f"http://127.0.0.1:{STUB_PORT}"
API = f"http://127.0.0.1:{PREFECT_PORT}/api"
SECONDS, SIZE, IN_FLIGHT, REPEATS = 0.1, 20_000, 64, 8
START_SECONDS = 120.0
ROUNDS = 9
"""Times that each thing is measured, in turns with what it is compared with."""


FOR_COUNTING = {"PYTHONHASHSEED": "1", "PREFECT_API_REQUEST_TIMEOUT": "600"}


class Round(NamedTuple):
    """Processor seconds of one round."""

    whole: float
    """A run of all rollouts."""
    start: float
    """A run of one rollout."""
    plain_whole: float
    """All rollouts without Prefect."""
    plain_start: float
    """One rollout without Prefect."""
    server: float
    """Prefect's server meanwhile, beyond a run of one."""
    server_start: float

    @property
    def flow(self) -> float:
        """What a run takes beyond the cost of starting."""
        return self.whole - self.start

    @property
    def steps(self) -> float:
        """The same without Prefect."""
        return self.plain_whole - self.plain_start


# A flow with one step that does nothing, and the moment at which it does so.
EMPTY = """
import asyncio, time
from prefect import flow, task
@task
async def step(): print("began", time.time(), flush=True)
@flow
async def empty(): await step()
asyncio.run(empty())
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment with an empty home and no settings of Prefect's."""
    kept = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {**kept, **quiet, "HOME": str(home), "PREFECT_HOME": str(home), **more}


@contextmanager
def stub() -> Iterator[None]:
    """Serve the stub's rollouts."""
    line = [str(HERE / "stub_server.py"), str(STUB_PORT), str(SECONDS), str(SIZE)]
    child = subprocess.Popen([sys.executable, *line])
    try:
        yield
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


def counted(line: list[str], folder: Path, env: Mapping[str, str]) -> dict[str, float]:
    """Run a command under valgrind; return its millions of instructions by thread.

    The first thread is `01`. Processes that the command starts do not count.
    """
    name = unused("counts", folder)
    tool = ["valgrind", "--tool=callgrind", "--separate-threads=yes"]
    tool.append(f"--callgrind-out-file={name}/out")
    # The environment leaves nothing to chance, and Prefect's patience to the slow.
    cost([*tool, *line], folder, {**env, **FOR_COUNTING})
    threads = {}
    for path in sorted((folder / name).glob("out-*")):
        found = re.search(r"^(?:summary|totals): (\d+)", path.read_text(), re.MULTILINE)
        assert found, f"{path} holds no total"
        threads[path.name.rpartition("-")[2]] = int(found[1]) / 1e6
    return threads


def write_tasks(path: Path, count: int) -> None:
    """Write task rows of about 1.7 KB."""
    row = {"agent_ref": {"name": "stub_agent"}}
    with path.open("w") as file:
        for index in range(count):
            message = {"role": "user", "content": f"question {index} " + "x" * 1500}
            params = {"input": [message]}
            file.write(json.dumps({**row, "responses_create_params": params}) + "\n")


def planned(count: int) -> list[str]:
    """Return what plans so many rollouts."""
    repeats = min(count, REPEATS)
    return ["--input", f"{count}.jsonl", "--num-repeats", str(repeats)]


def plain_line(count: int, output: str) -> list[str]:
    """Return the run's steps without Prefect."""
    given = [f"{count}.jsonl", output, HEAD, str(IN_FLIGHT), str(min(count, REPEATS))]
    return [sys.executable, str(HERE / "plain_run.py"), *given]


def plain(folder: Path, count: int, env: Mapping[str, str]) -> float:
    """Do the run's steps without Prefect; return the processor seconds."""
    return cost(plain_line(count, f"{unused('plain', folder)}/r.jsonl"), folder, env)


def run_line(count: int, output: str) -> list[str]:
    """Return a run of `count` rollouts."""
    return [
        TOOL, "run", *planned(count), "--output", output,
        "--head-url", HEAD, "--concurrency", str(IN_FLIGHT),
    ]  # fmt: skip


def with_server(folder: Path, count: int) -> None:
    """Measure processor time and task runs, and the first request, with a server."""
    home = folder / "home"
    home.mkdir()
    env = environment(home, PREFECT_API_URL=API)
    with prefect_server(home) as pid:
        time.sleep(10)  # its own start goes on for a while
        began = time.perf_counter(), processor_seconds(pid)
        time.sleep(10)
        idle = (processor_seconds(pid) - began[1]) / (time.perf_counter() - began[0])
        rounds = [one_round(pid, idle, folder, count) for _ in range(ROUNDS)]
        tell_cost(count, rounds)
        first_requests("with a server that runs", folder, env)


def count_instructions(folder: Path, count: int) -> None:
    """Count what a run executes, and the same without Prefect, and print it."""
    home = folder / "home"
    home.mkdir()
    env = environment(home, PREFECT_API_URL=API)
    beyond = []
    with prefect_server(home):
        for line_of, what in ((plain_line, "plain"), (flow_line, "flow")):
            start, whole = (
                counted(line_of(size, f"{unused(what, folder)}/r.jsonl"), folder, env)
                for size in (1, count)
            )
            for size, threads in ((1, start), (count, whole)):
                each = ", ".join(f"{name}: {n:,.0f}" for name, n in threads.items())
                print(f"{what} of {size}: {sum(threads.values()):,.0f} M ({each})")
            beyond.append(sum(whole.values()) - sum(start.values()))
    steps, flow = beyond
    print(
        f"{count} rollouts, beyond the cost of starting: the steps by themselves"
        f" {steps:,.0f} M instructions, as a flow {flow:,.0f} M"
        f" (at most {100 * (flow / steps - 1):.1f} % more)"
    )


def flow_line(count: int, output: str) -> list[str]:
    """Return a run of `count` rollouts as a line for the interpreter."""
    return [sys.executable, *run_line(count, output)]


def one_round(pid: int, idle: float, folder: Path, count: int) -> Round:
    """Measure everything once, one after the other."""
    env = environment(folder / "home", PREFECT_API_URL=API)
    start, server_start = one_run(pid, idle, folder, 1)
    plain_start = plain(folder, 1, env)
    plain_whole = plain(folder, count, env)
    whole, server_whole = one_run(pid, idle, folder, count)
    return Round(
        whole,
        start,
        plain_whole,
        plain_start,
        server_whole - server_start,
        server_start,
    )


def one_run(pid: int, idle: float, folder: Path, count: int) -> tuple[float, float]:
    """Run once; return the processor seconds of the run and of Prefect's server.

    `idle` is what the server uses in a second when nothing is asked of it.
    """
    env = environment(folder / "home", PREFECT_API_URL=API)
    before, at = processor_seconds(pid), time.perf_counter()
    own = cost(run_line(count, f"{unused('run', folder)}/r.jsonl"), folder, env)
    time.sleep(5)  # until the server has written what it was told
    used = processor_seconds(pid) - before
    return own, used - idle * (time.perf_counter() - at)


def unused(stem: str, folder: Path) -> str:
    """Return the name of a folder that is not there yet."""
    number = sum(1 for _ in folder.glob(f"{stem}-*"))
    (folder / f"{stem}-{number}").mkdir()
    return f"{stem}-{number}"


def tell_cost(count: int, rounds: Sequence[Round]) -> None:
    """Print what the run took, and what of it is Prefect's."""
    middle = Round(*map(median, zip(*rounds, strict=True)))
    least = Round(*map(min, zip(*rounds, strict=True)))
    for each in rounds:
        print("  " + " ".join(f"{figure:6.2f}" for figure in each))
    shares = [100 * (each.flow / each.steps - 1) for each in rounds]
    print(f"{count} rollouts, beyond the cost of starting, medians of {len(rounds)}:")
    print(f"  the steps by themselves  {middle.steps:6.2f} s of processor time")
    print(
        f"  the same as a flow       {middle.flow:6.2f} s ({median(shares):+.1f} %;"
        f" from {min(shares):+.1f} to {max(shares):+.1f})"
    )
    print(
        f"  least of each            {least.steps:6.2f} s and {least.flow:.2f} s"
        f" ({100 * (least.flow / least.steps - 1):+.1f} %)"
    )
    print(f"  Prefect's server         {middle.server:6.2f} s")
    print(
        f"one rollout, all of it: {middle.start:.2f} s, and"
        f" {middle.server_start:.2f} s of the server"
    )
    wanted = {"flow_runs": {"name": {"like_": "into run-"}}}
    reply = httpx.post(f"{API}/task_runs/filter", json=wanted, trust_env=False)
    runs = [one["flow_run_id"] for one in reply.json()]
    per_run = sorted(runs.count(flow_run) for flow_run in set(runs))
    print(f"task runs of a run of 1 and of one of {count} rollouts: {set(per_run)}")


def first_requests(what: str, folder: Path, env: Mapping[str, str]) -> None:
    """Print the time to the first request of a run, beside that of an empty flow."""
    ours, own = [], []
    for number in range(ROUNDS):
        output = folder / f"first-{what[:12]}-{number}"
        began = time.time()
        cost(run_line(1, f"{output}/r.jsonl"), folder, env)
        (line,) = (output / "r_timings.jsonl").read_text().splitlines()
        ours.append(json.loads(line)["started"] - began)
        began = time.time()
        done = subprocess.run(
            [sys.executable, "-c", EMPTY], env=dict(env), capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        said = next(one for one in done.stdout.splitlines() if one.startswith("began"))
        own.append(float(said.split()[1]) - began)
    print(f"first request {what}: {min(ours):.1f} s; an empty flow: {min(own):.1f} s")


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=5_000)
    parser.add_argument("--instructions", action="store_true")
    given = parser.parse_args()
    count: int = given.rollouts
    if given.instructions and shutil.which("valgrind") is None:
        sys.exit("--instructions needs valgrind, which is not installed")
    with tempfile.TemporaryDirectory() as name, stub():
        folder = Path(name)
        for size in (1, count):
            write_tasks(folder / f"{size}.jsonl", max(1, size // REPEATS))
        if given.instructions:
            count_instructions(folder, count)
            return
        with_server(folder, count)
        home = folder / "alone"
        home.mkdir()
        more = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120"}
        first_requests("with a temporary server", folder, environment(home, **more))


if __name__ == "__main__":
    main()
