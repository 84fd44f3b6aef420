"""The flow as a process, reporting to a Prefect server, and what stops it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS
from tests.observing import asked, is_alive, keys, planned, turn, until

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]
Found = Callable[..., list[dict[str, object]]]

ROOT = Path(__file__).parents[2]
CANBERRA = "capital of Australia"  # a word of the first task
# What `gym env start` is to the run: a head server on the given port, and its servers.
GYM = """#!/bin/bash
for one in "$@"; do
    case $one in ++head_server.port=*) port=${{one#*.port=}} ;; esac
done
echo $$ > gym.pid
echo "serving on $port"
exec {python} -P -m reward_profiling.demo --port $port
"""
LONG = ["demo", "--output", "r.jsonl", "--num-repeats", "5", "--concurrency", "12"]


def run(servers: httpx.Client, *options: str) -> list[str]:
    return ["run", "--input", str(EMBEDDED_TASKS), "--output", "r.jsonl",
            "--head-url", str(servers.base_url), *options]  # fmt: skip


def collected(output: Path, count: int) -> None:
    """Wait until so many rollouts are on disk."""
    until(
        lambda: output.exists() and output.read_bytes().count(b"\n") >= count,
        f"{count} rollouts on disk",
    )


def environments_of(owner: int) -> list[int]:
    """Return the processes that `owner` started to serve the embedded environment."""
    threads = Path(f"/proc/{owner}/task").glob("*/children")
    children = [pid for thread in threads for pid in thread.read_text().split()]
    return [
        int(pid)
        for pid in children
        if b"reward_profiling.demo" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_partial_run_is_not_green(
    command: Run, servers: httpx.Client, api_url: str, found: Found, tmp_path: Path
) -> None:
    turn(servers, fail_status=500, fail_match=CANBERRA)
    line = [*run(servers), "--num-repeats", "2", "--retries", "0"]

    first = command(*line, PREFECT_API_URL=api_url)
    turn(servers, fail_status=0)
    profile = (tmp_path / "r_reward_profiling.jsonl").read_bytes()
    second = command(*line, PREFECT_API_URL=api_url)

    assert first.returncode == 3, first.stderr
    assert first.stdout.startswith("46 of 48 rollouts collected: 2 failed (2 agent_")
    assert profile.count(b"\n") == 23
    assert second.returncode == 0, second.stderr
    assert keys(tmp_path / "r.jsonl") == planned(tmp_path / "r.jsonl")
    assert asked(servers) == {**planned(tmp_path / "r.jsonl"), "0:0": 2, "0:1": 2}
    names = {"flow_runs": {"name": {"like_": "2 repeats of tasks into r.jsonl"}}}
    states = {run["state_name"]: run["state"] for run in found("flow_runs", names)}
    assert set(states) == {"Partial", "Completed"}
    assert states["Partial"]["type"] == "FAILED"  # type: ignore[index]
    said = states["Partial"]["message"]  # type: ignore[index]
    assert said.startswith("46 of 48 rollouts collected: 2 failed (2 agent_run_error);")


def test_identical_rows_are_never_cached(
    command: Run, servers: httpx.Client, api_url: str, tmp_path: Path
) -> None:
    row = EMBEDDED_TASKS.read_bytes().splitlines()[0] + b"\n"
    (tmp_path / "same.jsonl").write_bytes(row * 2)
    line = ["run", "--input", "same.jsonl", "--output", "r.jsonl", "--num-repeats", "4"]

    done = command(*line, "--head-url", str(servers.base_url), PREFECT_API_URL=api_url,
                   PREFECT_TASKS_DEFAULT_PERSIST_RESULT="true")  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert asked(servers) == {f"0:{repeat}": 1 for repeat in range(8)}


def test_demo_takes_a_new_folder(command: Run, api_url: str, tmp_path: Path) -> None:
    (tmp_path / "reward-profiling-demo").mkdir()

    done = command("demo", "--num-repeats", "1", PREFECT_API_URL=api_url)

    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "reward-profiling-demo").iterdir()) == []
    assert (tmp_path / "reward-profiling-demo-2" / "rollouts.jsonl").exists()
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_the_records(
    start: Start, api_url: str, tmp_path: Path, number: signal.Signals
) -> None:
    child = start(*LONG, PREFECT_API_URL=api_url)
    collected(tmp_path / "r.jsonl", 20)
    (environment,) = environments_of(child.pid)

    child.send_signal(number)
    said, _ = child.communicate(timeout=15)

    assert child.returncode == 128 + number, said
    assert said.splitlines()[-1].endswith("run the same command again to do the rest")
    assert "Traceback" not in said
    assert not is_alive(environment)
    assert set(keys(tmp_path / "r.jsonl").values()) == {1}
    assert len(keys(tmp_path / "r.jsonl")) >= 20


@pytest.mark.parametrize(
    "told", [{"state": {"type": "CANCELLING"}},
             {"state": {"type": "CANCELLED", "message": "by force"}, "force": True}],
    ids=["cancelling", "cancelled"],
)  # fmt: skip
def test_a_run_is_cancelled_from_its_page(
    start: Start, api_url: str, found: Found, tmp_path: Path, told: dict[str, object]
) -> None:
    output = tmp_path / "cancelled.jsonl"
    child = start("demo", "--output", output, "--num-repeats", "100",
                  PREFECT_API_URL=api_url)  # fmt: skip
    collected(output, 20)
    named = {"flow_runs": {"name": {"like_": f"into {output}"}}}
    (run,) = found("flow_runs", named)

    url = f"{api_url}/flow_runs/{run['id']}/set_state"
    httpx.post(url, json=told, trust_env=False).raise_for_status()
    said, _ = child.communicate(timeout=40)

    assert child.returncode == 143, said
    assert "Traceback" not in said
    kept = keys(output).total()
    (ended,) = found("flow_runs", named)
    assert ended["state_name"] == "Cancelled"
    message = ended["state"]["message"]  # type: ignore[index]
    assert message.startswith(f"{kept} of 2400 rollouts collected")


def test_after_a_kill_the_rest_is_done(
    command: Run, start: Start, api_url: str, tmp_path: Path
) -> None:
    child = start(*LONG, PREFECT_API_URL=api_url)
    collected(tmp_path / "r.jsonl", 20)
    (environment,) = environments_of(child.pid)

    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not is_alive(environment), "the environment is gone", seconds=5)
    kept = keys(tmp_path / "r.jsonl")
    rest = command(*LONG, PREFECT_API_URL=api_url)

    assert rest.returncode == 0, rest.stderr
    assert f"{len(kept)} from earlier runs" in rest.stderr
    assert keys(tmp_path / "r.jsonl") == planned(tmp_path / "r.jsonl")


@pytest.fixture
def on_gym(tmp_path: Path) -> list[str]:
    """Give a run of 120 rollouts on a gym that it starts."""
    gym = tmp_path / "gym"
    gym.write_text(GYM.format(python=sys.executable))
    gym.chmod(0o755)
    return ["run", "--input", str(EMBEDDED_TASKS), "--output", "r.jsonl",
            "--num-repeats", "5", "--concurrency", "12",
            "--gym-command", str(gym), "--gym-config", "a.yaml"]  # fmt: skip


def gym_in(folder: Path) -> int:
    return int((folder / "gym.pid").read_text())


def test_the_run_stops_soon_after_gym_ends(
    command: Run, start: Start, on_gym: list[str], api_url: str, tmp_path: Path
) -> None:
    child = start(*on_gym, PREFECT_API_URL=api_url, PYTHONPATH=str(ROOT))
    collected(tmp_path / "r.jsonl", 20)

    os.kill(gym_in(tmp_path), signal.SIGKILL)
    said, _ = child.communicate(timeout=30)
    kept = keys(tmp_path / "r.jsonl")
    rest = command(*on_gym, PREFECT_API_URL=api_url, PYTHONPATH=str(ROOT))

    assert child.returncode == 1, said
    assert "`gym env start` ended with exit code 137 during the run; see" in said
    assert "r_servers.log. The missing rollouts are still owed" in said
    assert f"{len(kept)} of 120 rollouts collected" in said
    assert rest.returncode == 0, rest.stderr
    assert f"{len(kept)} from earlier runs" in rest.stderr
    assert keys(tmp_path / "r.jsonl") == planned(tmp_path / "r.jsonl")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_gym_we_started(
    start: Start, on_gym: list[str], api_url: str, tmp_path: Path,
    number: signal.Signals,
) -> None:  # fmt: skip
    child = start(*on_gym, PREFECT_API_URL=api_url, PYTHONPATH=str(ROOT))
    collected(tmp_path / "r.jsonl", 5)
    gym = gym_in(tmp_path)
    assert is_alive(gym)

    child.send_signal(number)
    child.communicate(timeout=15)

    until(lambda: not is_alive(gym), "gym is gone", seconds=10)


def test_a_missing_gym_is_told_first(command: Run, tmp_path: Path) -> None:
    line = ["run", "--input", str(EMBEDDED_TASKS), "--output", "r.jsonl"]

    done = command(*line, "--gym-resources-server", "mcqa", "--gym-command", "no-gym")

    assert done.returncode == 2
    assert done.stderr.startswith("error: --gym-command: no-gym cannot be run; install")
    assert list(tmp_path.iterdir()) == []


def test_a_run_outlives_prefects_server(
    command: Run, start: Start, mortal_server: tuple[str, int], tmp_path: Path
) -> None:
    url, server = mortal_server
    child = start(*LONG, PREFECT_API_URL=url, PREFECT_CLIENT_MAX_RETRIES="0")
    collected(tmp_path / "r.jsonl", 20)

    os.killpg(server, signal.SIGKILL)
    said, _ = child.communicate(timeout=60)

    assert child.returncode == 0, said
    assert "lost Prefect's server" in said
    assert "120 of 120 rollouts collected" in said
    assert keys(tmp_path / "r.jsonl") == planned(tmp_path / "r.jsonl")
    assert command("inspect", "r.jsonl").returncode == 0


def test_a_missing_prefect_is_told_in_a_line(command: Run) -> None:
    url = "http://127.0.0.1:9/api"

    done = command("demo", PREFECT_API_URL=url)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: Prefect's server does not answer: ")
    assert url in done.stderr
    assert "Traceback" not in done.stderr


def test_a_profiles_server_is_not_temporary(
    command: Run, api_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "prefect"
    home.mkdir()
    named = f'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "{api_url}"\n'
    (home / "profiles.toml").write_text(named)

    done = command("demo", "--num-repeats", "1", PREFECT_HOME=str(home))

    assert done.returncode == 0, done.stderr
    assert "temporary server" not in done.stderr
    assert "page of this run: " in done.stderr


def test_a_temporary_server_fills_in(command: Run) -> None:
    done = command("demo", "--num-repeats", "1")

    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("starting Prefect's temporary server …\n")
    assert done.stdout.startswith("24 of 24 rollouts collected; mean reward ")
