"""`merge`: shards become one file, where there is a plan."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from reward_profiling.servers.options import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))


def test_merge_needs_a_plan(command: Run, tmp_path: Path) -> None:
    shard = tmp_path / "r-shard-0-of-1.jsonl"
    shard.write_bytes(b'{"_ng_task_index":0,"_ng_rollout_index":0}\n')

    done = command("merge", tmp_path / "r.jsonl")
    mistyped = command("merge", tmp_path / "rums" / "r.jsonl")

    assert (done.returncode, mistyped.returncode) == (2, 2)
    assert "nothing was merged" in done.stderr.replace("\n", " ")
    assert list(tmp_path.iterdir()) == [shard]
