"""Kills a collection again and again at random moments and says what that cost.

    python benchmarks/kill_loop.py [KILLS]

Prints how many planned rollouts were lost or recorded twice, and how often the
environment was asked beside the most that it may be: planned + kills x concurrency.
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

CONCURRENCY = 16
REPEATS = 200
TASKS = Path(__file__).parents[1] / "reward_profiling" / "demo" / "tasks.jsonl"
TOOL = str(Path(sys.executable).with_name("reward-profiling"))


def keys(path: Path) -> Counter[tuple[int, int]]:
    """Count the rollout keys of a file; a torn line has none."""
    found: Counter[tuple[int, int]] = Counter()
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row["_ng_task_index"], row["_ng_rollout_index"]] += 1
    return found


def knobs(url: str, **changes: object) -> dict[str, int]:
    """Turn the environment's knobs, or read its counters."""
    body = json.dumps(changes).encode() if changes else None
    with urllib.request.urlopen(f"{url}/_knobs", data=body) as reply:
        counters: dict[str, int] = json.load(reply)
    return counters


def run(kills: int, folder: Path, url: str) -> None:
    """Kill `kills` collections, let the last one finish, and print what is left."""
    output = folder / "rollouts.jsonl"
    plan = [TOOL, "materialize", "--input", str(TASKS), "--output", str(output)]
    subprocess.run([*plan, "--num-repeats", str(REPEATS)], check=True)
    collect = [TOOL, "collect", "--output", str(output), "--head-url", url]
    collect += ["--concurrency", str(CONCURRENCY)]
    knobs(url, latency_ms=200)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for _ in range(kills):
        child = subprocess.Popen(collect, **quiet)
        time.sleep(random.uniform(0.3, 1.2))
        child.send_signal(signal.SIGKILL)
        child.wait()
    at_kills = sum(keys(output).values())
    subprocess.run(collect, check=True, **quiet)
    planned, found = keys(folder / "rollouts_materialized_inputs.jsonl"), keys(output)
    print(f"{kills} kills while {at_kills} of {len(planned)} rollouts were collected")
    print(f"lost {len(planned - found)}, recorded twice {len(found - planned)}")
    most = len(planned) + kills * CONCURRENCY
    print(f"asked {knobs(url)['requests']} times, at most {most} allowed")


def main() -> None:
    """Start an environment and run the loop on it."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    server = subprocess.Popen(
        [sys.executable, "-m", "reward_profiling.demo", "--watch-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    with tempfile.TemporaryDirectory() as name:
        run(kills, Path(name), url)
    server.communicate()


if __name__ == "__main__":
    main()
