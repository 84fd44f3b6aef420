from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reward_profiling.insights.document import Insights
from reward_profiling.reporting.report_run import report_page
from tests.reporting.browser import Browser, browser, found


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give a real browser."""
    command = found()
    if command is None:
        pytest.skip("no chromium on this machine: the report is not seen in a browser")
    with browser(command, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Insights], Path]:
    """Give a way to write the report of some insights."""

    def write(insights: Insights) -> Path:
        path = tmp_path / "rollouts_report.html"
        path.write_bytes(report_page(insights))
        return path

    return write
