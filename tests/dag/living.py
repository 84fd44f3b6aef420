"""Prefect as it lives: what is deployed on a server, and who listens to it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1400,1000", "--virtual-time-budget=15000",
)  # fmt: skip
COMMAND = str(Path(sys.executable).with_name("reward-profiling"))


def browse(url: str, option: str) -> str:
    """Open a page in a browser with a profile of its own; return what it prints."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            [str(BROWSER), *QUIET, f"--user-data-dir={folder}", option, url],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    return done.stdout


class Deployed:
    """What is deployed on the shared server: how runs are made, and what is known."""

    def __init__(self, api: str, folder: Path, env: dict[str, str]) -> None:
        self.api, self.folder, self.env = api, folder, env
        self.command = COMMAND

    def call(self, method: str, path: str, **given: Any) -> httpx.Response:  # noqa: ANN401
        """Ask the API; again while its database is busy, as Prefect's client does."""
        while True:
            url = f"{self.api}/{path}"
            reply = httpx.request(method, url, **given, trust_env=False, timeout=30)
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
            time.sleep(0.2)
        return state


class Workers:
    """One worker process at a time."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._child: subprocess.Popen[bytes] | None = None

    def one(self) -> subprocess.Popen[bytes]:
        """Return the worker that runs; start one where none does."""
        if self._child is None or self._child.poll() is not None:
            folder = self._deployed.folder
            with (folder / "worker.log").open("ab") as log:
                self._child = subprocess.Popen(
                    [COMMAND, "worker"], cwd=folder, env=self._deployed.env,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
        return self._child

    def kill(self) -> None:
        """Kill the worker and what it runs."""
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


class Hook:
    """A receiver of webhooks on this machine."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        heard = self.heard

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                heard.append(json.loads(body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
