"""Prefect as it lives: what is deployed on a server, and who listens to it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Self

import httpx

from tests.observing import HTTP

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1400,1000", "--virtual-time-budget=15000",
)  # fmt: skip
COMMAND = str(Path(sys.executable).with_name("reward-profiling"))
START_SECONDS = 90.0


_ENDING: list[Callable[[], None]] = []


def end_all() -> None:
    """Kill every server and worker that is left."""
    while _ENDING:
        _ENDING.pop()()


def browse(url: str, option: str) -> str:
    """Open a page in a browser with a profile of its own; return what it prints."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            [str(BROWSER), *QUIET, f"--user-data-dir={folder}", option, url],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    return done.stdout


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, by their pids."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def migrated_database() -> Path:
    """Return a database with Prefect's tables, made once: that takes 10 s of CPU."""
    made = (
        Path(gettempdir()) / f"reward-profiling-tests-prefect-{version('prefect')}.db"
    )
    if not made.exists():
        with TemporaryDirectory() as home:
            env = {name: it for name, it in os.environ.items() if "PREFECT" not in name}
            upgrade = ("server", "database", "upgrade", "-y")
            subprocess.run(
                [sys.executable, "-m", "prefect", *upgrade],
                env={**env, "HOME": home, "PREFECT_HOME": home, "DO_NOT_TRACK": "1"},
                check=True, capture_output=True,
            )  # fmt: skip
            own = made.with_suffix(f".{os.getpid()}")
            shutil.copy(Path(home) / "prefect.db", own)
            own.replace(made)  # whole at once, for the tests beside these
    return made


class PrefectServer:
    """A Prefect server that may be killed, and started again where it was."""

    def __init__(self, home: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.api = f"http://127.0.0.1:{self._port}/api"
        self._home = home
        _ENDING.append(self.kill)
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Start it and wait until it answers; return its pid."""
        env = {name: it for name, it in os.environ.items() if "PREFECT" not in name}
        env |= {
            "HOME": str(self._home),
            "PREFECT_HOME": str(self._home),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",  # 2 s of CPU
            "PREFECT_SERVER_API_PORT": str(self._port),  # the page asks the API there
            "PREFECT_UI_API_URL": self.api,
        }
        port = str(self._port)
        if not (self._home / "prefect.db").exists():
            shutil.copy(migrated_database(), self._home / "prefect.db")
        with (self._home / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start", "--port", port],
                env=env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._wait_until_healthy(self._child)
        return self._child.pid

    def _wait_until_healthy(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(httpx.TransportError):
                if HTTP.get(f"{self.api}/health").is_success:
                    return
            assert child.poll() is None, "Prefect's server ended while it started"
            assert time.monotonic() < deadline, "Prefect's server did not start in time"
            time.sleep(0.1)

    def kill(self) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


class Deployed:
    """What is deployed on the shared server: how runs are made, and what is known."""

    def __init__(self, api: str, folder: Path, env: dict[str, str]) -> None:
        self.api, self.folder, self.env = api, folder, env
        self.command = COMMAND

    @classmethod
    def on(
        cls,
        api: str,
        folder: Path,
        env: dict[str, str],
        *options: str,
        cwd: Path = Path("/"),
    ) -> "Deployed":
        """Register everything on a server by the product's own command."""
        env = {
            **env,
            "PREFECT_API_URL": api,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "DO_NOT_TRACK": "1",
        }
        done = subprocess.run(
            [COMMAND, "deploy", "--folder", folder, *options],
            cwd=cwd, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (folder / "registered.txt").write_text(done.stdout)
        return cls(api, folder, env)

    def call(self, method: str, path: str, **given: Any) -> httpx.Response:  # noqa: ANN401
        """Ask the API; again while its database is busy, as Prefect's client does."""
        while True:
            url = f"{self.api}/{path}"
            reply = HTTP.request(method, url, **given)
            if reply.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return reply
            time.sleep(0.5)

    def get(self, path: str, **query: str) -> Any:  # noqa: ANN401 - JSON
        return self.call("GET", path, params=query).raise_for_status().json()

    def post(self, path: str, wanted: object) -> httpx.Response:
        return self.call("POST", path, json=wanted)

    def deployment(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"deployments/name/reward-profiling/{name}")
        return found

    def ask(self, name: str, **params: object) -> httpx.Response:
        """Ask for a run of a deployment, as Prefect's page does."""
        known = self.deployment(name)
        given = {**known["parameters"]["params"], **params}
        wanted = {"state": {"type": "SCHEDULED"}, "parameters": {"params": given}}
        return self.post(f"deployments/{known['id']}/create_flow_run", wanted)

    def run(self, name: str, **params: object) -> str:
        return str(self.ask(name, **params).raise_for_status().json()["id"])

    def state(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"flow_runs/{run}")["state"]
        return found

    def states(self, run: str) -> list[str]:
        return [one["name"] for one in self.get("flow_run_states/", flow_run_id=run)]

    def until(self, run: str, *names: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait until a run is in one of the states."""
        deadline = time.monotonic() + seconds
        while (state := self.state(run))["name"] not in names:
            assert time.monotonic() < deadline, f"{names} not in time: {state}"
            time.sleep(0.4)
        return state

    @contextmanager
    def impatient(self, seconds: float) -> Iterator[None]:
        """Have a silent run crash sooner than in life."""
        automations = self.post("automations/filter", {}).json()
        (silent,) = [one for one in automations if "silent" in one["name"]]
        path = f"automations/{silent['id']}"
        kept = ("name", "description", "enabled", "trigger", "actions")
        body = {name: silent[name] for name in kept}
        trigger = {**body["trigger"], "within": seconds}
        self.call("PUT", path, json={**body, "trigger": trigger}).raise_for_status()
        yield
        self.call("PUT", path, json=body).raise_for_status()


class Workers:
    """One worker process at a time."""

    def __init__(self, deployed: Deployed, *before: str) -> None:
        self._deployed, self._command = deployed, [*before, COMMAND, "worker"]
        self._child: subprocess.Popen[bytes] | None = None
        _ENDING.append(self.kill)

    def one(self) -> subprocess.Popen[bytes]:
        """Return the worker that runs; start one where none does."""
        if self._child is None or self._child.poll() is not None:
            folder = self._deployed.folder
            with (folder / "worker.log").open("ab") as log:
                self._child = subprocess.Popen(
                    self._command, cwd=folder, env=self._deployed.env,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
        return self._child

    def kill(self) -> None:
        """Kill the worker and what it runs, as when a machine is lost."""
        if self._child is not None and self._child.poll() is None:
            runs = children_of(self._child.pid)
            self._child.kill()
            self._child.wait()
            for run in runs:
                with suppress(ProcessLookupError):
                    os.kill(run, signal.SIGKILL)


class Hook:
    """A receiver of webhooks on this machine."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        heard = self.heard

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kind = {"content_type": self.headers["Content-Type"]}
                heard.append(json.loads(body) | kind)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


class Model:
    """A model endpoint that takes its time, and counts; it lives in a `with` block."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = self.answered = 0
        model, counting = self, threading.Lock()
        part = {"type": "output_text", "text": "Answer: Canberra", "annotations": []}
        message = {"type": "message", "role": "assistant", "content": [part]}
        known = {"id": "resp_1", "object": "response", "status": "completed"}
        reply = json.dumps({**known, "output": [message]}).encode()

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with counting:
                    model.asked += 1
                time.sleep(model.seconds)
                with suppress(ConnectionError):  # who asked may be gone by now
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(reply)))
                    self.end_headers()
                    self.wfile.write(reply)
                    with counting:
                        model.answered += 1

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
