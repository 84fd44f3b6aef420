"""No secret of Gym's configuration is found anywhere a run leaves words."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest

Found = Callable[..., list[dict[str, object]]]
Held = Callable[[], dict[str, bytes]]
Start = Callable[..., subprocess.Popen[str]]

KEY = "planted-0-endpoint"
PLANTED = {
    "bearer": "planted-1-bearer-xk29",
    "url password": "planted-2-url",
    "*_key": "planted-3-Key",
    "*_token": "planted-4-token",
    "password": 'planted-5 pass"word',
    "secret": "planted-6-secret",
    "list of keys": "planted-7-listed",
    "from the environment": "planted-8-environment",
}
CONFIG = {
    "judge": {"responses_api_models": {"openai_model": {
        "entrypoint": "app.py",
        "default_headers": {"Authorization": f"Bearer {PLANTED['bearer']}"},
        "base_url": f"http://user:{PLANTED['url password']}@judge.test/v1",
        "search_key": PLANTED["*_key"],
        "hub_token": PLANTED["*_token"],
        "client_secret": PLANTED["secret"],
    }}},
    "math": {"resources_servers": {"math": {
        "entrypoint": "app.py",
        "database": {"password": PLANTED["password"]},
        "api_keys": ["none", PLANTED["list of keys"]],
        "judge_api_key": "${oc.env:JUDGE_SECRET}",
    }}},
}  # fmt: skip

VARIABLES = {"MODEL_API_KEY": KEY, "JUDGE_SECRET": PLANTED["from the environment"]}

# A gym whose only agent says, in every way that it has, what it must not.
TALKATIVE = """#!{python}
import http.server, json, os, sys
planted = {planted!r} + [os.environ["MODEL_API_KEY"], os.environ["JUDGE_SECRET"]]
(port,) = [int(one[19:]) for one in sys.argv if one.startswith("++head_server.port=")]
agent = {{"entrypoint": "app.py", "host": "127.0.0.1", "port": port}}
config = {config!r} | {{"math_agent": {{"responses_api_agents": {{"a": agent}}}}}}
print("starting with", *planted, flush=True)
class Server(http.server.BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(200, config if "config" in self.path else [])
    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = row.get("_ng_task_index", -1)
        words = f"failed {{number}} with {{planted[number]}}"
        nested = json.dumps({{"error": json.dumps({{"said": words}})}})
        failure = {{"reward": 0, "_ng_failure_class": "judge_failed", "seen": [nested],
                   "_ng_failure_message": words}}
        if number % 3 == 0:
            self.answer(200, failure)
        else:
            self.answer(500 if number % 2 else 400, nested if number >= 0 else planted)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Server).serve_forever()
"""


# Each begins so, and no beginning of one may be left either.
NEEDLES = [f"planted-{number}".encode() for number in range(9)]


def needles_in(content: bytes) -> list[bytes]:
    return [needle for needle in NEEDLES if needle in content]


@contextmanager
def command_lines_watched() -> Iterator[list[bytes]]:
    """Collect the command lines of this machine that hold a planted value."""
    seen: list[bytes] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = entry.read_bytes()
                except OSError:
                    continue
                if needles_in(line):
                    seen.append(line)
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


@pytest.fixture
def line(tmp_path: Path) -> list[str]:
    """Give a run on the talkative gym: as many tasks as there are values."""
    # Those that come from the environment are not in the script.
    planted = list(PLANTED.values())[:-1]
    gym = tmp_path / "gym"
    gym.write_text(
        TALKATIVE.format(python=sys.executable, planted=planted, config=CONFIG)
    )
    gym.chmod(0o755)
    row = {
        "agent_ref": {"name": "math_agent"},
        "responses_create_params": {"input": []},
    }
    rows = [{**row, "question": number} for number in range(len(PLANTED) + 1)]
    (tmp_path / "talkative.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return ["run", "--input", "talkative.jsonl", "--output", "out/r.jsonl",
            "--retries", "0", "--gym-command", str(gym),
            "--gym-config", "a.yaml"]  # fmt: skip


@pytest.fixture
def held(api_url: str, found: Found) -> Callable[[], dict[str, bytes]]:
    """Give a way to read all that Prefect's server holds of this file's flow run."""

    def read() -> dict[str, bytes]:
        wanted = {"flow_runs": {"name": {"like_": "of talkative into"}}}
        (run,) = found("flow_runs", wanted)
        ids = {"flow_run_id": {"any_": [run["id"]]}}
        states = httpx.get(
            f"{api_url}/flow_run_states/",
            params={"flow_run_id": str(run["id"])}, trust_env=False,
        )  # fmt: skip
        rows = {
            "flow runs": [run],
            "flow run states": states.raise_for_status().json(),
            "task runs": found("task_runs", wanted),
            "logs": found("logs", {"logs": ids}),
            "artifacts": found("artifacts", {"artifacts": ids}),
        }
        assert all(rows.values()), {name: len(held) for name, held in rows.items()}
        return {name: orjson.dumps(held) for name, held in rows.items()}

    return read


def test_no_planted_secret_is_left(
    line: list[str], start: Start, api_url: str, held: Held, tmp_path: Path
) -> None:
    with command_lines_watched() as seen:
        child = start(*line, PREFECT_API_URL=api_url, **VARIABLES)
        said, _ = child.communicate(timeout=120)

    assert child.returncode == 3, said
    assert seen == []
    assert needles_in(said.encode()) == []
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {"r_failures.jsonl", "r_servers.log"} <= {path.name for path in files}
    assert [path for path in files if needles_in(path.read_bytes())] == []
    assert [name for name, rows in held().items() if needles_in(rows)] == []


def test_the_rest_of_what_was_said_is_kept(
    line: list[str], start: Start, api_url: str, tmp_path: Path
) -> None:
    said, _ = start(*line, PREFECT_API_URL=api_url, **VARIABLES).communicate(
        timeout=120
    )

    failures = (tmp_path / "out" / "r_failures.jsonl").read_bytes().splitlines()
    records = {row["_ng_task_index"]: row for row in map(orjson.loads, failures)}
    assert sorted(records) == list(range(9)), said
    for number, record in records.items():
        assert f"failed {number} with [redacted]" in orjson.dumps(record).decode()
    log = (tmp_path / "out" / "r_servers.log").read_text()
    assert log.startswith("starting with [redacted] [redacted] ")
