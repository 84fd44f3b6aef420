"""A browser without a window, asked over the DevTools protocol."""

import asyncio
import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--remote-debugging-port=0",
)  # fmt: skip
_PATIENCE_SECONDS = 60.0


def found() -> str | None:
    """Return the browser of this machine; none where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser(command: str, home: Path) -> Iterator["Browser"]:
    """Start a browser with a profile of its own; end it."""
    line = [command, *_SWITCHES, f"--user-data-dir={home}", "about:blank"]
    env = {**os.environ, "HOME": str(home), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    with subprocess.Popen(
        line, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        try:
            with Browser(_address(home / "DevToolsActivePort", child)) as opened:
                yield opened
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()


def _address(note: Path, child: subprocess.Popen[bytes]) -> str:
    """Wait until the browser has written where it listens."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        if child.poll() is not None:
            raise RuntimeError(f"the browser ended with {child.returncode}")
        lines = note.read_text().splitlines() if note.exists() else []
        if len(lines) > 1:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise TimeoutError("the browser did not start")


class Browser:
    """One connection to a browser; what it says by itself is kept by tab."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._runner = asyncio.Runner()
        self._last = 0
        self.said: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        self._runner.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(trust_env=False)
        self._socket = await self._session.ws_connect(self._address, max_msg_size=0)

    async def _close(self) -> None:
        await self._socket.close()
        await self._session.close()

    def ask(
        self, method: str, tab: str | None = None, **given: object
    ) -> dict[str, Any]:
        """Ask one thing and return the answer; an error of the protocol is raised."""
        return self._runner.run(self._ask(method, tab, given))

    async def _ask(
        self, method: str, tab: str | None, given: dict[str, object]
    ) -> dict[str, Any]:
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": given}
        await self._socket.send_json(message | ({"sessionId": tab} if tab else {}))
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                heard = await self._socket.receive_json()
                if heard.get("id") != number:
                    self.said.setdefault(heard.get("sessionId", ""), []).append(heard)
                elif "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']['message']}")
                else:
                    return dict(heard["result"])

    @contextmanager
    def tab(self, width: int = 1280, height: int = 900) -> Iterator["Tab"]:
        """Open a tab of a size; close it."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, session["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.ask(f"{domain}.enable")
        tab.resize(width, height)
        try:
            yield tab
        finally:
            self.ask("Target.closeTarget", targetId=target)


class Tab:
    """One page in a browser."""

    def __init__(self, owner: Browser, session: str) -> None:
        self._owner = owner
        self._session = session

    def ask(self, method: str, **given: object) -> dict[str, Any]:
        return self._owner.ask(method, self._session, **given)

    def resize(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """Say that the person likes it "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def open(self, path: Path, fragment: str = "") -> None:
        """Go to a report and wait until it has put itself together."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=path.as_uri() + fragment)
        self.wait(f"location.href.includes({path.name!r})")
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """Return what a script gives, awaited; what it throws is raised."""
        done = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a script gives something true."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while not self.run(f"!!({condition})"):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def picture(self, path: Path, *, whole: bool = True) -> None:
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(
            self.ask("Page.printToPDF", printBackground=True)["data"]
        )

    def complaints(self) -> list[str]:
        """Return what went wrong in the page, and what it asked of a network."""
        self.run("0")  # whatever was said before is heard now
        heard = self._owner.said.get(self._session, [])
        return [words for event in heard if (words := _complaint(event))]


def _complaint(event: dict[str, Any]) -> str | None:
    method, given = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        return str(given["exceptionDetails"])
    if method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
        return str(given["args"])
    if method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
        return str(given["entry"])
    if method == "Network.requestWillBeSent":
        url = str(given["request"]["url"])
        return None if url.startswith(("file:", "about:")) else f"asked for {url}"
    return None
