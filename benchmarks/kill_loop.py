"""Kills commands again and again at random moments and says what that cost.

    python benchmarks/kill_loop.py [KILLS [KILLS_OF_FILES]]

First a collection: prints how many planned rollouts were lost or recorded twice, and
how often the environment was asked beside the most that it may be: planned + kills x
concurrency. Then `merge`, `profile` and `report`, each on a fresh copy of an output,
which then has to come out as if it had never been killed.
"""

import json
import random
import shutil
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
    kind = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{url}/_knobs", body, kind)
    with urllib.request.urlopen(asked) as reply:
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
        time.sleep(random.uniform(0.3, 2.0))
        child.send_signal(signal.SIGKILL)
        child.wait()
    at_kills = sum(keys(output).values())
    subprocess.run(collect, check=True, **quiet)
    planned, found = keys(folder / "rollouts_materialized_inputs.jsonl"), keys(output)
    print(f"{kills} kills while {at_kills} of {len(planned)} rollouts were collected")
    print(f"lost {len(planned - found)}, recorded twice {len(found - planned)}")
    most = len(planned) + kills * CONCURRENCY
    print(f"asked {knobs(url)['requests']} times, at most {most} allowed")


def killed(command: list[str], most: float) -> bool:
    """Kill a command within `most` seconds; say whether it was still running."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen(command, **quiet)
    time.sleep(random.uniform(0.02, most))
    was_running = child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    return was_running


def whole(folder: Path) -> dict[str, bytes]:
    """Return what must not depend on kills: all but locks and files with times."""
    names = (".lock", ".html", ".parquet", "_timings.jsonl")
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if not path.name.endswith(names) and not path.name.startswith(".")
    }


def run_on_files(kills: int, folder: Path, url: str) -> None:
    """Kill commands on files, let each finish, and compare with an unharmed output."""
    shards = folder / "shards"
    output = shards / "rollouts.jsonl"
    plan = [TOOL, "materialize", "--input", str(TASKS), "--output", str(output)]
    subprocess.run([*plan, "--num-repeats", str(REPEATS)], check=True)
    knobs(url, latency_ms=0)
    for shard in ("0/2", "1/2"):
        collect = [TOOL, "collect", "--output", str(output), "--head-url", url]
        subprocess.run([*collect, "--shard", shard], check=True, capture_output=True)

    def commands(at: Path) -> list[list[str]]:
        name = str(at / output.name)
        profile = [TOOL, "profile", "--rollouts", name, "--insights"]
        return [[TOOL, "merge", name], profile, [TOOL, "report", name]]

    copies = [folder / f"after-{count}" for count in range(4)]
    shutil.copytree(shards, copies[0])
    for count in range(3):
        shutil.copytree(copies[count], copies[count + 1])
        line = commands(copies[count + 1])[count]
        subprocess.run(line, check=True, capture_output=True)
    differing = running = 0
    for number in range(kills):
        step, work = number % 3, folder / "work"
        shutil.copytree(copies[step], work)
        line = commands(work)[step]
        running += killed(line, (0.4, 1.2, 1.0)[step])
        subprocess.run(line, check=True, capture_output=True)
        differing += keys(work / output.name) != keys(copies[3] / output.name)
        if step:
            differing += whole(work) != whole(copies[step + 1])
        shutil.rmtree(work)
    print(f"{kills} kills of merge, profile and report, {running} of them in time")
    print(f"{differing} outputs differ from those of unharmed commands")


def main() -> None:
    """Start an environment and run the loops on it."""
    given = dict(enumerate(map(int, sys.argv[1:])))
    kills, of_files = given.get(0, 200), given.get(1, 60)
    server = subprocess.Popen(
        [sys.executable, "-m", "reward_profiling.demo", "--watch-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    with tempfile.TemporaryDirectory() as name:
        if kills:
            run(kills, Path(name), url)
        if of_files:
            run_on_files(of_files, Path(name), url)
    server.communicate()


if __name__ == "__main__":
    main()
