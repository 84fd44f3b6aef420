"""What tests see of processes, files and the embedded environment from outside."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import orjson

HTTP = httpx.Client(
    trust_env=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0)
)
"""Asks again and again: making a client takes 70 ms of CPU, for its certificates."""


def until(holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait until something holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(pause)
        pause = min(0.2, pause * 1.3)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def keys(path: Path) -> Counter[str]:
    """Count the rollout keys of a file, written as the environment counts them."""
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    pairs = [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows]
    return Counter(f"{task}:{repeat}" for task, repeat in pairs)


def planned(output: Path) -> Counter[str]:
    """Count the keys of the plan of an output named r.jsonl."""
    return keys(output.with_name("r_materialized_inputs.jsonl"))


def asked(servers: httpx.Client) -> Counter[str]:
    """Return how often the environment was asked for each rollout."""
    return Counter(servers.get("/_knobs").json()["by_key"])


def turn(servers: httpx.Client, **knobs: object) -> None:
    """Have the environment behave otherwise."""
    servers.post("/_knobs", json=knobs).raise_for_status()


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until a file has so many lines."""
    until(
        lambda: path.exists() and path.read_bytes().count(b"\n") >= count,
        "nothing was collected",
        seconds=30.0,
    )


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server on a port of its own while the block runs; give its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
