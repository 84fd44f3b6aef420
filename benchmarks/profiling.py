"""What profiling costs, ours beside Gym's own command, on the same files.

    python benchmarks/profiling.py [--gym-command PATH] [--repeats N] [--growth]

Runs are interleaved, and each figure is the median: CPU seconds of the command (user
and system) and its peak memory. "again" is a second profile of ours, from its columns.
Compiled modules of both commands are kept in one folder, so that none compiles anything
while it is measured. Prints a table in Markdown.

`--growth` profiles 50,000, 200,000 and 1,000,000 rollouts with ours alone, and `--big`
a file of 3 GB with no more than 600 MB of address space.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from profile_data import Shape, write

OURS = str(Path(sys.executable).with_name("reward-profiling"))
CASES = (
    # name, tasks, repeats
    ("1,000 of 8 KB", 125, 8, Shape(8)),
    ("10,000 of 8 KB", 625, 16, Shape(8)),
    ("50,000 of 8 KB", 3_125, 16, Shape(8)),
    ("10,000 of 110 KB, of text", 625, 16, Shape(110)),
    ("10,000 of 110 KB, of short tool calls", 625, 16, Shape(110, tools=30)),
)
GROWTH = (3_125, 12_500, 62_500)
GROWTH_REPEATS = 16
SMALL = Shape(2, characters=100)
BIG_TASKS, BIG_REPEATS = 1_900, 16
BIG_LIMIT = 600_000_000


@dataclass(frozen=True)
class Cost:
    """What one command used."""

    cpu: float
    megabytes: float


def measure(command: list[str], folder: Path, limit: int | None = None) -> Cost:
    """Run a command to its end and account for it; `limit` is in bytes."""

    def limit_memory() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=limit_memory,  # noqa: PLW1509 - no threads here
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"failed: {' '.join(command)}\n{said.decode()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def ours(rollouts: Path, *options: str) -> list[str]:
    """Return our command."""
    return [OURS, "profile", "--rollouts", str(rollouts), *options]


def gym(command: str, rollouts: Path) -> list[str]:
    """Return Gym's command."""
    plan = rollouts.with_name("rollouts_materialized_inputs.jsonl")
    return [
        command, "eval", "profile", "--inputs", str(plan), "--rollouts", str(rollouts),
    ]  # fmt: skip


def medians(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.megabytes for cost in costs),
    )


def compare(rollouts: Path, gym_command: str | None, repeats: int) -> dict[str, Cost]:
    """Measure one case; the first round warms up and is left out."""
    commands = {
        "ours": ours(rollouts, "--rebuild"),
        "again": ours(rollouts),
        "insights": ours(rollouts, "--rebuild", "--insights"),
    }
    if gym_command:
        commands["gym"] = gym(gym_command, rollouts)
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(repeats + 1):
        for name, command in commands.items():
            cost = measure(command, rollouts.parent.parent)
            if turn:
                found[name].append(cost)
    return {name: medians(costs) for name, costs in found.items()}


def row(name: str, found: dict[str, Cost]) -> str:
    """Return a row of the table."""
    base = found.get("gym")
    cells = [name]
    if base:
        cells.append(f"{base.cpu:.2f} s, {base.megabytes:.0f} MB")
    for kind in ("ours", "again", "insights"):
        cost = found[kind]
        cell = f"{cost.cpu:.2f} s, {cost.megabytes:.0f} MB"
        if base:
            memory = base.megabytes / cost.megabytes
            cell += f": 1/{base.cpu / cost.cpu:.0f}, 1/{memory:.0f}"
        cells.append(cell)
    return f"| {' | '.join(cells)} |"


def run_cases(folder: Path, gym_command: str | None, repeats: int) -> None:
    """Measure every case and print the table."""
    columns = ["rollouts", *(["Gym"] if gym_command else [])]
    columns += ["ours", "ours again", "ours with insights"]
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")
    for name, tasks, times, shape in CASES:
        rollouts = write(folder / "case", tasks, times, shape)
        print(row(name, compare(rollouts, gym_command, repeats)), flush=True)
        clear(folder / "case")


def run_growth(folder: Path) -> None:
    """Print how the cost of ours grows with the rollouts."""
    print("| rollouts of 2 KB | first | again |\n|---|---|---|")
    for tasks in GROWTH:
        rollouts = write(folder / "case", tasks, GROWTH_REPEATS, SMALL)
        costs = [measure(ours(rollouts), folder) for _ in range(2)]
        cells = [f"{cost.cpu:.1f} s, {cost.megabytes:.0f} MB" for cost in costs]
        print(f"| {tasks * GROWTH_REPEATS:,} | {' | '.join(cells)} |", flush=True)
        clear(folder / "case")


def run_big(folder: Path) -> None:
    """Profile a file larger than the memory that the command may have."""
    rollouts = write(folder / "case", BIG_TASKS, BIG_REPEATS, Shape(110))
    size = rollouts.stat().st_size
    cost = measure(ours(rollouts), folder, limit=BIG_LIMIT)
    print(f"{size / 1e9:.1f} GB: {cost.cpu:.1f} s, {cost.megabytes:.0f} MB")
    clear(folder / "case")


def clear(folder: Path) -> None:
    """Remove a case's files."""
    for path in folder.iterdir():
        path.unlink()


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gym-command", help="Gym's own command, to compare with")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--big", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.growth:
            run_growth(folder)
        elif options.big:
            run_big(folder)
        else:
            run_cases(folder, options.gym_command, options.repeats)


if __name__ == "__main__":
    main()
