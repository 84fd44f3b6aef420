"""The report as a file: its command, what it holds, what it asks for."""

import base64
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.document import Insights
from reward_profiling.insights.insights_file import replace_insights
from reward_profiling.reporting.report_run import report_page
from reward_profiling.reporting.report_template import VERSIONS
from tests.reporting.samples import HOSTILE, a_hostile_run, a_run

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "reward_profiling" / "reporting" / "template" / "vendor"


@pytest.fixture
def output(tmp_path: Path) -> RunFiles:
    """Give an output that has insights."""
    files = RunFiles(tmp_path / "rollouts.jsonl")
    files.rollouts.touch()
    insights = a_run()
    replace_insights(files.insights, insights, insights.tasks)
    return files


class _Parts(HTMLParser):
    """Elements of a page, and the text of each script."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._is_script = False
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._is_script = tag == "script" and "type" not in dict(attrs)
        if self._is_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_script = self._is_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self.scripts[-1] += data
        else:
            self.text += data


def test_the_command_says_where_its_file_is(command: Run, output: RunFiles) -> None:
    done = command("report", output.rollouts)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "3 findings shown, 0.6 MB",
        f"  {output.report}",
    ]
    assert output.report.read_bytes() == report_page(a_run())
    assert sorted(path.name for path in output.rollouts.parent.iterdir()) == [
        "rollouts.jsonl", "rollouts_insights.json", "rollouts_report.html",
    ]  # fmt: skip


def test_the_command_starts_no_prefect(
    output: RunFiles, command_env: dict[str, str]
) -> None:
    script = str(Path(sys.executable).with_name("reward-profiling"))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", script, "report", str(output.rollouts)],
        env=command_env, capture_output=True, text=True, check=True,
    )  # fmt: skip

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "jinja2" in imported
    assert imported.isdisjoint({"prefect", "httpx", "aiohttp"})


def test_missing_insights_have_a_remedy(command: Run, tmp_path: Path) -> None:
    done = command("report", "rollouts.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: rollouts_insights.json does not exist; write it with `reward-profiling"
        " profile --insights --rollouts rollouts.jsonl`\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_export_says_how_to_make_insights(command: Run) -> None:
    done = command("export", "rollouts.jsonl", "--mlflow")

    assert done.returncode == 2
    assert "write it with `reward-profiling profile --insights" in done.stderr


@pytest.mark.parametrize("content", ["", "{}", '{"schema_version": 99}', "[1]"])
def test_bad_insights_keep_the_older_report(
    command: Run, output: RunFiles, content: str
) -> None:
    output.report.write_text("older")
    output.insights.write_text(content)

    done = command("report", output.rollouts)

    assert (done.returncode, done.stdout) == (2, "")
    assert str(output.insights) in done.stderr
    assert output.report.read_text() == "older"


def test_records_after_insights_are_told(command: Run, output: RunFiles) -> None:
    later = output.insights.stat().st_mtime_ns + 10**9
    os.utime(output.rollouts, ns=(later, later))

    done = command("report", output.rollouts)

    assert done.returncode == 0
    assert "has records newer than the insights" in done.stderr


def test_a_report_is_no_name_for_an_output(command: Run) -> None:
    done = command("report", "rollouts_report.html")

    assert done.returncode == 2
    assert "--output names the rollouts file itself" in done.stderr


@pytest.mark.parametrize("insights", [a_run(), a_hostile_run()], ids=["run", "hostile"])
def test_the_page_runs_only_its_own_scripts(
    insights: Insights,
) -> None:
    parts = _Parts(report_page(insights))

    policy = next(
        given["content"] or ""
        for tag, given in parts.elements
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    digests = {
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in parts.scripts
    }
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == digests
    assert len(parts.scripts) == 6
    assert policy.startswith("default-src 'none';")
    for tag, given in parts.elements:
        assert tag not in {"img", "link", "iframe", "object", "base"}
        assert "src" not in given
        assert (given.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") or name == "style" for name in given)


def test_user_text_is_shown_unchanged() -> None:
    parts = _Parts(report_page(a_hostile_run()))

    for text in HOSTILE[:3]:
        assert text in parts.text


def test_equal_insights_give_equal_bytes() -> None:
    assert report_page(a_run()) == report_page(a_run())


@pytest.mark.parametrize(
    ("name", "file"), [("d3", "d3.min.js"), ("plot", "plot.umd.min.js")]
)
def test_library_licences_are_stated(name: str, file: str) -> None:
    first = (VENDOR / file).read_text().splitlines()[0]
    licences = (VENDOR / "LICENSES.txt").read_text()

    assert f"v{VERSIONS[name]} " in first
    assert f"{VERSIONS[name]} ({file})" in licences
    assert licences.count("Copyright") >= 5
    page = report_page(a_run()).decode()
    assert VERSIONS[name] in _Parts(page.encode()).text


def test_a_wheel_carries_the_whole_page() -> None:
    included = {
        file.distribution_path
        for file in WheelBuilder(str(ROOT)).recurse_included_files()
    }

    folder = ROOT / "reward_profiling" / "reporting" / "template"
    needed = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*.*")}
    assert len(needed) == 9
    assert needed <= included
