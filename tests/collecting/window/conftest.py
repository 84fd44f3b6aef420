from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_profiling.collecting.window.recorder import Journals
from reward_profiling.files.run_files import RunFiles


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(tmp_path / "r.jsonl")


@pytest.fixture
def journals(files: RunFiles) -> Iterator[Journals]:
    """Give the open journals of the output."""
    with Journals.opened(files) as opened:
        yield opened
