"""What a run costs on real servers: theirs, the steps' work, and Prefect's share.

    python benchmarks/whole_run.py --head-url URL --servers PID --input FILE
        [--agent NAME] [--num-repeats N] [--in-flight N]

PID is what started the servers, such as `gym env start`: it and all that comes from it
are counted. A Prefect server is started for the run and counted by itself.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from prefect_runs import API, HERE, cost, environment, prefect_server, processor_seconds

SETTLE_SECONDS = 10.0


def family(ancestor: int) -> Iterator[int]:
    """Yield a process and all that comes from it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    waiting = [ancestor]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        yield pid


def used(ancestor: int) -> float:
    """Return the processor seconds of a family of processes so far."""
    return sum(map(processor_seconds, family(ancestor)))


def measure(given: argparse.Namespace, folder: Path) -> None:
    """Do the run, and print what it cost."""
    home, report = folder / "home", folder / "account.json"
    home.mkdir()
    output = folder / "run" / "rollouts.jsonl"
    line = [
        sys.executable, str(HERE / "accounted_run.py"), str(report), "run",
        "--input", str(given.input.absolute()), "--output", str(output),
        "--head-url", given.head_url, "--num-repeats", str(given.num_repeats),
        "--concurrency", str(given.in_flight),
        *(["--agent-name", given.agent] if given.agent else []),
    ]  # fmt: skip
    with prefect_server(home) as server:
        time.sleep(SETTLE_SECONDS)  # its own start goes on for a while
        servers, prefect, began = (
            used(given.servers),
            processor_seconds(server),
            time.monotonic(),
        )
        whole = cost(line, folder, environment(home, PREFECT_API_URL=API))
        servers, prefect = (
            used(given.servers) - servers,
            processor_seconds(server) - prefect,
        )
    account = json.loads(report.read_text())
    start = whole - account["steps"] - account["rest"]
    everything = servers + whole
    size = output.stat().st_size
    with output.open("rb") as file:
        count = sum(1 for _ in file)
    print(f"{count} rollouts of {size / max(count, 1) / 1000:.1f} KB", end=", ")
    print(f"{time.monotonic() - began:.0f} s; seconds of a processor:")
    print(f"  the servers {servers:.1f}, the steps {account['steps']:.1f}")
    for what, seconds in (
        ("beside the steps", account["rest"]),
        ("the start", start),
        ("Prefect's server, if it is on this machine", prefect),
    ):
        share = 100 * seconds / everything
        print(f"  {what} {seconds:.2f}: {share:.1f} % of the run's {everything:.0f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--head-url", required=True)
    parser.add_argument("--servers", type=int, required=True)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--agent")
    parser.add_argument("--num-repeats", type=int, default=1_000)
    parser.add_argument("--in-flight", type=int, default=64)
    with tempfile.TemporaryDirectory() as folder:
        measure(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
