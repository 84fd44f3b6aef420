"""What Prefect adds to a run, in instructions: what is executed, counted by valgrind.

    python benchmarks/orchestration_instructions.py [--rollouts N]

Hardly differs from time to time, whatever else the machine does. But a run takes fifty
times as long as by itself, twenty minutes in all, so that what it does by the clock
counts fifty times: the progress that it reports, its sign of life, and most of what
Prefect's own threads do. The share is at most what is said, and processes that watch
over a run are left out.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from prefect_runs import (
    API,
    TOOL,
    cost,
    environment,
    plain_line,
    prefect_server,
    run_line,
    stub,
    unused,
    write_tasks,
)

FOR_COUNTING = {"PYTHONHASHSEED": "1", "PREFECT_API_REQUEST_TIMEOUT": "600"}


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


def lines(what: str, count: int, folder: Path, head: str) -> list[str]:
    """Return the command of the steps without Prefect, or of a run."""
    output = f"{unused(what, folder)}/r.jsonl"
    if what == "plain":
        return [sys.executable, *plain_line(count, output, head)]
    return [sys.executable, TOOL, *run_line(count, output, head)]


def count_instructions(folder: Path, count: int, head: str) -> None:
    """Count what a run executes, and the same without Prefect, and print it."""
    home = folder / "home"
    home.mkdir()
    env = environment(home, PREFECT_API_URL=API)
    beyond = []
    with prefect_server(home):
        for what in ("plain", "flow"):
            totals = []
            for size in (1, count):
                threads = counted(lines(what, size, folder, head), folder, env)
                totals.append(sum(threads.values()))
                each = ", ".join(f"{name}: {n:,.0f}" for name, n in threads.items())
                print(f"{what} of {size}: {totals[-1]:,.0f} M ({each})", flush=True)
            beyond.append(totals[1] - totals[0])
    steps, flow = beyond
    print(
        f"{count} rollouts, beyond the cost of starting: the steps by themselves"
        f" {steps:,.0f} M instructions, as a flow {flow:,.0f} M"
        f" (at most {100 * (flow / steps - 1):.1f} % more)"
    )


def main() -> None:
    """Count everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=5_000)
    count: int = parser.parse_args().rollouts
    if shutil.which("valgrind") is None:
        sys.exit("this needs valgrind, which is not installed")
    with tempfile.TemporaryDirectory() as name, stub() as head:
        folder = Path(name)
        for size in (1, count):
            write_tasks(folder, size)
        count_instructions(folder, count, head)


if __name__ == "__main__":
    main()
