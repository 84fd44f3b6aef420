"""The run's pages as a browser draws them; skipped where there is no Chromium."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Found = Callable[..., list[dict[str, object]]]

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1400,1000", "--virtual-time-budget=15000",
)  # fmt: skip

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="chromium is not installed: pages are not drawn"
)


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """Give a way to open a page in a browser: its picture, or its text."""

    def opened(url: str, *options: str) -> str:
        command = [str(BROWSER), *QUIET, f"--user-data-dir={tmp_path / 'browser'}"]
        done = subprocess.run(
            [*command, *options, url],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        return done.stdout

    return opened


@needs_browser
def test_the_run_and_its_report_are_drawn(
    command: Run,
    api_url: str,
    found: Found,
    browse: Callable[..., str],
    tmp_path: Path,
) -> None:
    done = command("demo", "--output", "page.jsonl", "--num-repeats", "1",
                   PREFECT_API_URL=api_url)  # fmt: skip
    named = {"name": {"like_": "1 repeats of tasks into page.jsonl"}}
    (run,) = found("flow_runs", {"flow_runs": named})
    (report,) = found("artifacts", {
        "artifacts": {"key": {"any_": ["reward-profiling-report"]}}, "flow_runs": named,
    })  # fmt: skip
    server = api_url.removesuffix("/api")
    picture = tmp_path / "run.png"

    browse(f"{server}/runs/flow-run/{run['id']}", f"--screenshot={picture}")
    text = browse(f"{server}/artifacts/artifact/{report['id']}", "--dump-dom")

    assert done.returncode == 0
    assert picture.stat().st_size > 30_000  # an empty page takes a few
    assert "24 of 24 rollouts collected</h1>" in text
    assert "multiple_choice_agent</td>" in text
