"""What Prefect adds to a run: processor time, task runs, and time to the first request.

    python benchmarks/orchestration.py [--rollouts N] [--pairs N]

A plan of N rollouts (5,000) is run twice at the same time, by the functions that the
steps call (plain_run.py) and by `run`, each on a processor of its own with a server of
its own, and on each other's processor the next time: what else the machine does moves
single runs by a third, and both of a pair alike. Each accounts for itself
(accounted_run.py), so that the seconds of the interpreter's start, which differ by more
than Prefect adds, are left out. Prefect's server is started for it, and works on the
processor of `run`.

Then the time from the command to its first request, beside a flow of Prefect's with one
empty step: with that server, and with the temporary one that Prefect starts by itself.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import httpx
from prefect_runs import (
    API,
    HERE,
    TOOL,
    cost,
    environment,
    plain_line,
    prefect_server,
    processor_seconds,
    run_line,
    stub,
    unused,
    write_tasks,
)

PAIRS, LEAST_PAIRS = 24, 4
SOONER = 1.9
"""Seconds that a run starts before the steps alone, for both to collect at once."""
TIMES = 9
"""Times that the first request is waited for."""


class Account(NamedTuple):
    """Processor seconds of a run, from its first step on."""

    steps: float
    """The work of the steps."""
    rest: float
    """All else."""


class Pair(NamedTuple):
    """The same rollouts with Prefect and without, at the same time."""

    flow: Account
    plain: Account
    server: float
    """Processor seconds of Prefect's server meanwhile."""

    @property
    def steps_ratio(self) -> float:
        """Logarithm of how much longer the steps took with Prefect."""
        return math.log(self.flow.steps / self.plain.steps)

    @property
    def whole_ratio(self) -> float:
        """Logarithm of how much longer all took with Prefect."""
        return math.log(sum(self.flow) / sum(self.plain))

    @property
    def beside(self) -> float:
        """What Prefect adds beside the steps."""
        return self.flow.rest - self.plain.rest


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


class Accounted:
    """A run on one processor that accounts for itself."""

    def __init__(
        self, line: Sequence[str], folder: Path, env: Mapping[str, str], processor: int
    ) -> None:
        self._report = folder / f"account-{processor}.json"
        script = [str(HERE / "accounted_run.py"), str(self._report)]
        self._child = subprocess.Popen(
            [sys.executable, *script, *line], cwd=folder, env=dict(env),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.sched_setaffinity(self._child.pid, {processor})

    def account(self) -> Account:
        """Wait for its end."""
        if self._child.wait():
            sys.exit(f"failed: {self._child.args!r}")
        return Account(**json.loads(self._report.read_text()))


def one_pair(
    server: int, heads: Sequence[str], folder: Path, count: int, *, swapped: bool
) -> Pair:
    """Run both at once; `heads` are the addresses of each processor's servers."""
    env = environment(folder / "home", PREFECT_API_URL=API)
    one, other = (1, 0) if swapped else (0, 1)
    pin(server, one)
    before = processor_seconds(server)
    output = f"{unused('run', folder)}/r.jsonl"
    flow = Accounted(run_line(count, output, heads[one]), folder, env, one)
    time.sleep(SOONER)
    output = f"{unused('plain', folder)}/r.jsonl"
    plain = Accounted(plain_line(count, output, heads[other]), folder, env, other)
    accounts = flow.account(), plain.account()
    return Pair(*accounts, processor_seconds(server) - before)


def pin(pid: int, *processors: int) -> None:
    """Have all threads of a process work on some processors."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), processors)


def with_server(folder: Path, heads: Sequence[str], count: int, pairs: int) -> None:
    """Measure processor time and task runs, and the first request, with a server."""
    home = folder / "home"
    home.mkdir()
    env = environment(home, PREFECT_API_URL=API)
    with prefect_server(home) as server:
        time.sleep(10)  # its own start goes on for a while
        of_one, of_all = (
            [
                one_pair(server, heads, folder, size, swapped=number % 2 == 1)
                for number in range(pairs)
            ]
            for size in (1, count)
        )
        tell_cost(count, of_one, of_all)
        tell_task_runs(count, pairs)
        pin(server, 0, 1)
        first_requests("with a server that runs", folder, heads[0], env)


def tell_cost(count: int, of_one: Sequence[Pair], of_all: Sequence[Pair]) -> None:
    """Print what the run took, and what of it is Prefect's."""
    print("steps and rest of a flow, steps and rest without Prefect, Prefect's server")
    for pair in of_all:
        figures = (*pair.flow, *pair.plain, pair.server)
        print("  " + " ".join(f"{figure:6.2f}" for figure in figures))
    steps = mean(pair.plain.steps for pair in of_all)
    beside = mean(pair.beside for pair in of_all)
    fixed = mean(pair.beside for pair in of_one)
    print(f"{count} rollouts, {len(of_all)} pairs, seconds of a processor:")
    print(f"  the steps without Prefect {steps:.2f}")
    print(f"  their work in a flow {more([pair.steps_ratio for pair in of_all])}")
    print(
        f"  beside it {beside:.2f} ({100 * beside / steps:.1f} %), of which a run of"
        f" one rollout takes {fixed:.2f}:"
        f" {100 * (beside - fixed) / steps:.1f} % come with the rollouts"
    )
    print(f"  altogether {more([pair.whole_ratio for pair in of_all])}")
    server = mean(p.server for p in of_all)
    print(
        f"  Prefect's server {server:.2f}, with a run of one rollout"
        f" {mean(p.server for p in of_one):.2f}"
    )


def more(logs: Sequence[float]) -> str:
    """Return the mean of ratios, by their logarithms, as so much per cent more.

    Neighbours swapped processors: their mean has no part in which one is faster.
    """
    ratios = [mean(two) for two in zip(logs[::2], logs[1::2], strict=True)]
    error = stdev(ratios) / math.sqrt(len(ratios))
    return f"{100 * mean(ratios):+.1f} % (standard error {100 * error:.1f})"


def tell_task_runs(count: int, pairs: int) -> None:
    """Print how many task runs the first run had, and the first of all rollouts."""
    time.sleep(5)  # the server records them a moment later
    for size, number in ((1, 0), (count, pairs)):
        wanted = {"flow_runs": {"name": {"like_": f"into run-{number}/"}}}
        reply = httpx.post(f"{API}/task_runs/filter", json=wanted, trust_env=False)
        print(f"task runs of a run of {size} rollouts: {len(reply.json())}")


def first_requests(what: str, folder: Path, head: str, env: Mapping[str, str]) -> None:
    """Print the time to the first request of a run, beside that of an empty flow."""
    ours, own = [], []
    for number in range(TIMES):
        output = folder / f"first-{what[:12]}-{number}"
        began = time.time()
        cost([TOOL, *run_line(1, f"{output}/r.jsonl", head)], folder, env)
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
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    if given.pairs < LEAST_PAIRS or given.pairs % 2:
        parser.error(f"--pairs takes an even number, {LEAST_PAIRS} or more")
    count: int = given.rollouts
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        heads = [stack.enter_context(stub(processor)) for processor in (0, 1)]
        for size in (1, count):
            write_tasks(folder, size)
        with_server(folder, heads, count, given.pairs)
        home = folder / "alone"
        home.mkdir()
        more = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120"}
        env = environment(home, **more)
        first_requests("with a temporary server", folder, heads[0], env)


if __name__ == "__main__":
    main()
