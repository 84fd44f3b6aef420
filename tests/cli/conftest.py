import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS


@pytest.fixture
def half(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Path:
    """Give an output of 4 planned rollouts of which 3 are collected."""
    command("materialize", "--input", EMBEDDED_TASKS, "--output", "r.jsonl",
            "--limit", "2", "--num-repeats", "2")  # fmt: skip
    lines = (tmp_path / "r_materialized_inputs.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) | {"reward": 1.0} for line in lines[:3]]
    output = tmp_path / "r.jsonl"
    output.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return output
