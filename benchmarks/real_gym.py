"""What our command and Gym's own make of the same plan, on the same running servers.

    python benchmarks/real_gym.py --gym-venv FOLDER --head-url URL [AGENT …]

Every agent of the servers that has an example data set (or those named) is profiled by
our `run` and by Gym's `eval run --no-serve` and `eval profile`. Prints a row for each:
records, equal rewards and records, equal bytes of the three profile files, and seconds.

Each repeat carries a seed. Where the model answers the same to the same seed (Gym's
model server must be one that passes it on, such as `vllm_model`), everything must be
equal, but for identifiers and times; else rewards may differ.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
PROFILE_PARTS = (
    "reward_profiling.jsonl", "agent_metrics.json", "repeat_level_metrics.json",
)  # fmt: skip
PASSING = frozenset({"id", "created_at", "completed_at", "call_id", "item_id"})
"""Members that differ between two runs of anything."""


@dataclass(frozen=True)
class Bench:
    """Where everything is, and how much is asked."""

    ours: str
    gym: str
    data: Path
    """The folder that Gym's data paths are relative to."""
    head_url: str
    folder: Path
    repeats: int
    concurrency: int

    @property
    def head(self) -> list[str]:
        """Gym's arguments that say where the head server is."""
        host, _, port = self.head_url.removeprefix("http://").partition(":")
        return [f"++head_server.host={host}", f"++head_server.port={port}"]


def seconds_of(command: list[str], folder: Path) -> float:
    """Run a command and return how long it took; its output is kept in `folder`."""
    started = time.perf_counter()
    with (folder / "output.log").open("ab") as log:
        ended = subprocess.run(
            command, cwd=folder, check=False, stdout=log, stderr=subprocess.STDOUT
        )
    if ended.returncode:
        sys.stderr.write((folder / "output.log").read_text()[-3000:])
        sys.exit(f"exit code {ended.returncode}: {' '.join(command)}")
    return time.perf_counter() - started


def examples(bench: Bench) -> dict[str, Path]:
    """Return the example rows of each agent that the head server's configuration names.

    The configuration may hold secrets: nothing else of it is kept.
    """
    url = f"{bench.head_url}/global_config_dict_yaml"
    with urllib.request.urlopen(url, timeout=30) as reply:
        answer = json.load(reply)
    config = yaml.safe_load(answer) if isinstance(answer, str) else answer
    found = {}
    for name, block in config.items():
        agents = block.get("responses_api_agents") if isinstance(block, dict) else None
        for fields in (agents or {}).values():
            paths = [bench.data / path for path in example_paths(fields, config)]
            if existing := [path for path in paths if path.is_file()]:
                found[name] = existing[0]
    return found


def example_paths(agent: Json, config: Json) -> list[str]:
    """Return where an agent's examples are: as it says, or where its verifier is."""
    said = [
        str(dataset["jsonl_fpath"])
        for dataset in agent.get("datasets") or ()
        if dataset.get("type") == "example"
    ]
    verifier = config.get((agent.get("resources_server") or {}).get("name"), {})
    kinds = verifier.get("resources_servers", {})
    return [*said, *(f"resources_servers/{kind}/data/example.jsonl" for kind in kinds)]


def collect_ours(bench: Bench, agent: str, rows: Path, folder: Path) -> float:
    """Plan, collect, aggregate and profile with our command."""
    return seconds_of([
        bench.ours, "run", "--input", str(rows),
        "--output", str(folder / "rollouts.jsonl"), "--head-url", bench.head_url,
        "--agent-name", agent, "--num-repeats-add-seed",
        "--num-repeats", str(bench.repeats), "--concurrency", str(bench.concurrency),
    ], folder)  # fmt: skip


def collect_gyms(bench: Bench, agent: str, rows: Path, folder: Path) -> float:
    """Do the same with Gym's."""
    return seconds_of([
        bench.gym, "eval", "run", "--no-serve", "-a", agent, "-i", str(rows),
        "-o", str(folder / "rollouts.jsonl"), "--num-repeats", str(bench.repeats),
        "--concurrency", str(bench.concurrency), "+num_repeats_add_seed=true",
        *bench.head,
    ], folder)  # fmt: skip


def profile(command: list[str], folder: Path) -> tuple[list[bytes], float]:
    """Profile a folder's records with a command; return the bytes and the seconds."""
    rollouts = folder / "rollouts.jsonl"
    took = seconds_of([
        *command, "--inputs", str(folder / "rollouts_materialized_inputs.jsonl"),
        "--rollouts", str(rollouts),
    ], folder)  # fmt: skip
    return [(folder / f"rollouts_{part}").read_bytes() for part in PROFILE_PARTS], took


def records(folder: Path) -> dict[tuple[int, int], Json]:
    """Return the records by their key."""
    lines = (folder / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    parsed = [json.loads(line) for line in lines]
    found = {(r["_ng_task_index"], r["_ng_rollout_index"]): r for r in parsed}
    if len(found) != len(lines):
        sys.exit(f"{folder}: a rollout is recorded twice")
    return found


def lasting(value: object) -> object:
    """Return a record without what differs between two runs of anything."""
    if isinstance(value, dict):
        kept = {k: lasting(v) for k, v in value.items() if k not in PASSING}
        return list(kept.items())  # the order of members counts
    return [lasting(one) for one in value] if isinstance(value, list) else value


def aggregate(folder: Path) -> object:
    """Return what the environment servers said of the records."""
    path = folder / "rollouts_aggregate_metrics.json"
    return json.loads(path.read_text(encoding="utf-8"))


def yes(*, is_so: bool) -> str:
    """Say it in a table."""
    return "same" if is_so else "DIFFER"


def run_agent(bench: Bench, agent: str, rows: Path) -> list[str]:
    """Run one agent's examples both ways and compare; return the table's cells."""
    ours, gyms = bench.folder / agent / "ours", bench.folder / agent / "gym"
    for folder in (ours, gyms):
        folder.mkdir(parents=True)
    our_wall = collect_ours(bench, agent, rows, ours)
    gym_wall = collect_gyms(bench, agent, rows, gyms)
    ours_of_ours, _ = profile([bench.ours, "profile"], ours)
    gyms_of_ours, _ = profile([bench.gym, "eval", "profile"], ours)
    ours_of_gyms, _ = profile([bench.ours, "profile"], gyms)
    gyms_of_gyms, took = profile([bench.gym, "eval", "profile"], gyms)
    one, other = records(ours), records(gyms)
    plans = [f / "rollouts_materialized_inputs.jsonl" for f in (ours, gyms)]
    rewards = sum(
        k in other and r["reward"] == other[k]["reward"] for k, r in one.items()
    )
    same = sum(k in other and lasting(r) == lasting(other[k]) for k, r in one.items())
    mean = sum(record["reward"] for record in one.values()) / len(one)
    return [
        agent, yes(is_so=plans[0].read_bytes() == plans[1].read_bytes()),
        f"{len(one)} : {len(other)}", f"{rewards}/{len(one)}", f"{same}/{len(one)}",
        f"{mean:.3f}", yes(is_so=ours_of_ours == gyms_of_ours),
        yes(is_so=ours_of_gyms == gyms_of_gyms),
        yes(is_so=ours_of_ours == gyms_of_gyms),
        yes(is_so=aggregate(ours) == aggregate(gyms)),
        f"{our_wall:.1f} : {gym_wall + took:.1f}",
    ]  # fmt: skip


HEADINGS = (
    "agent", "plan", "records, ours : Gym's", "same reward", "same record",
    "mean reward", "profiles of our records", "profiles of Gym's records",
    "profile of ours and Gym's", "aggregate metrics", "seconds, ours : Gym's",
)  # fmt: skip


def main() -> None:
    """Run every agent, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT")
    parser.add_argument("--gym-venv", required=True, help="folder that Gym is in")
    parser.add_argument("--head-url", default="http://127.0.0.1:11000")
    parser.add_argument(
        "--command", help="ours, if not the one beside this Python",
        default=str(Path(sys.executable).with_name("reward-profiling")),
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--keep", help="keep the files in this folder")
    options = parser.parse_args()
    venv = Path(options.gym_venv).absolute()
    data = next((venv / "lib").glob("python*/site-packages"))
    folder = Path(options.keep or tempfile.mkdtemp()).absolute()
    bench = Bench(
        options.command, str(venv / "bin" / "gym"), data,
        options.head_url.rstrip("/"), folder, options.repeats, options.concurrency,
    )  # fmt: skip
    try:
        found = examples(bench)
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
        for agent in options.agents or sorted(found):
            if agent not in found:
                sys.exit(f"{agent} has no example rows; those have: {', '.join(found)}")
            print(
                f"| {' | '.join(run_agent(bench, agent, found[agent]))} |", flush=True
            )
    finally:
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
