"""What collecting costs, ours beside Gym's own command, against the same stub server.

    python benchmarks/collect.py [--gym-command PATH]

Client and server are pinned to a processor each. A run of one rollout gives the cost
of starting, which is taken off before dividing by the rollouts. Prints one row a case:
CPU milliseconds per rollout, rollouts per second, peak memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PORT = 18_555
CASES = (
    # seconds per rollout, bytes per reply, rollouts, in flight
    (0.03, 20_000, 8_000, 64),
    (0.03, 20_000, 12_000, 1_024),
    (0.03, 20_000, 12_000, 4_096),
    (0.1, 200_000, 2_000, 64),
    (2.0, 20_000, 16_384, 4_096),
)
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Cost:
    """What one command used."""

    cpu: float
    wall: float
    megabytes: float


def measure(command: list[str], folder: Path) -> Cost:
    """Run a command on the first processor and account for it."""
    started = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", "0", *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"failed: {' '.join(command)}")
    wall = time.perf_counter() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1000)


def write_tasks(path: Path, count: int) -> None:
    """Write task rows of about 1.7 KB."""
    with path.open("w") as file:
        for index in range(count):
            message = {"role": "user", "content": f"question {index} " + "x" * 1500}
            row = {
                "responses_create_params": {"input": [message]},
                "expected_answer": str(index),
                "agent_ref": {"name": "stub_agent"},
            }
            file.write(json.dumps(row) + "\n")


def ours(folder: Path, count: int, in_flight: int) -> Cost:
    """Collect with our command."""
    output = folder / f"ours-{count}" / "rollouts.jsonl"
    tool = str(Path(sys.executable).with_name("reward-profiling"))
    plan = [tool, "materialize", "--input", str(folder / f"{count}.jsonl")]
    subprocess.run([*plan, "--output", str(output)], check=True, capture_output=True)
    return measure([
        tool, "collect", "--output", str(output), "--concurrency", str(in_flight),
        "--head-url", f"http://127.0.0.1:{PORT}",
    ], folder)  # fmt: skip


def gym(command: str, folder: Path, count: int, in_flight: int) -> Cost:
    """Collect with Gym's command, without the aggregation at its end."""
    return measure([
        command, "eval", "run", "--no-serve", "-i", str(folder / f"{count}.jsonl"),
        "-o", str(folder / f"gym-{count}" / "rollouts.jsonl"),
        "--concurrency", str(in_flight), "--disable-aggregation", "--no-health-check",
        "++head_server.host=127.0.0.1", f"++head_server.port={PORT}",
    ], folder)  # fmt: skip


def row(name: str, count: int, start: Cost, whole: Cost) -> str:
    """Return a table row: the cost of a rollout, without that of starting."""
    cpu = (whole.cpu - start.cpu) / count * 1000
    rate = count / (whole.wall - start.wall)
    return f"{name:5} {cpu:7.2f} ms CPU  {rate:7.0f}/s  {whole.megabytes:6.0f} MB"


def run_case(case: tuple[float, int, int, int], gym_command: str | None) -> None:
    """Measure one case and print it."""
    seconds, size, count, in_flight = case
    print(f"{in_flight} in flight, {seconds:g} s, {size // 1000} KB: {count} rollouts")
    stub = subprocess.Popen([
        "taskset", "-c", "1", sys.executable, str(HERE / "stub_server.py"),
        str(PORT), str(seconds), str(size),
    ])  # fmt: skip
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tasks(folder / f"{count}.jsonl", count)
            write_tasks(folder / "1.jsonl", 1)
            time.sleep(1.0)
            start = ours(folder, 1, 1)
            print(" ", row("ours", count, start, ours(folder, count, in_flight)))
            if gym_command:
                start = gym(gym_command, folder, 1, 1)
                whole = gym(gym_command, folder, count, in_flight)
                print(" ", row("gym", count, start, whole))
    finally:
        stub.kill()
        stub.wait()


def main() -> None:
    """Run every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gym-command", help="Gym's own command, to compare with")
    options = parser.parse_args()
    for case in CASES:
        run_case(case, options.gym_command)


if __name__ == "__main__":
    main()
