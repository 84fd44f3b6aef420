"""How commands start: what they import, how soon, and what an interrupt does."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reward_profiling.servers.options import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))
OF_INSIGHTS = ("report", "select", "compare", "export")


@pytest.mark.parametrize(
    "arguments",
    [
        ["materialize", "--input", TASKS, "--output", "new.jsonl"],
        ["profile", "--rollouts", "r.jsonl", "--allow-partial"],
        ["inspect", "r.jsonl"],
        ["merge", "r.jsonl"],
        ["report", "r.jsonl"],
        ["select", "--input", "r_materialized_inputs.jsonl", "--rollouts", "r.jsonl",
         "--open-ends"],
        ["compare", "--baseline", "r.jsonl", "--candidate", "r.jsonl"],
        ["export", "r.jsonl", "--wandb"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_file_commands_import_little(
    half: Path, command: Run, command_env: dict[str, str], arguments: list[str]
) -> None:
    if arguments[0] in OF_INSIGHTS:
        command("profile", "--rollouts", half, "--allow-partial", "--insights")

    done = subprocess.run(
        [sys.executable, "-X", "importtime", SCRIPT, *arguments],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "reward_profiling.files.run_files" in imported, done.stderr
    assert imported.isdisjoint({"prefect", "httpx", "aiohttp", "pyarrow"})
    assert imported.isdisjoint({"rich.console", "rich.text"})  # no terminal is there
    if arguments[0] not in OF_INSIGHTS:
        assert "pydantic" not in imported


def test_file_commands_answer_fast(command: Run, half: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert command("inspect", half).returncode == 3

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # CPU time, since the wall's depends on what else the machine does.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.9


INTERRUPTED_EARLY = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "reward_profiling.errors":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from reward_profiling.cli.entry import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "shell", "code"),
    [
        (["profile", "--rollouts", "r.jsonl", "--allow-partial"], "", 130),
        (["inspect", "r.jsonl"], "", 130),
        (["profile", "--rollouts", "r.jsonl", "--allow-partial"], "trap '' INT;", 3),
    ],
    ids=["profile", "another command", "ignored"],
)
def test_an_early_interrupt_has_no_traceback(
    half: Path,
    command_env: dict[str, str],
    arguments: list[str],
    shell: str,
    code: int,
) -> None:
    line = [sys.executable, "-c", INTERRUPTED_EARLY, *arguments]

    done = subprocess.run(
        ["/bin/bash", "-c", f'{shell} "$@"; exit $?', "bash", *line],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
        preexec_fn=_heed_interrupts,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (code, "")
    assert half.with_name("r_reward_profiling.jsonl").exists() == (code != 130)


def _heed_interrupts() -> None:
    """Undo what a script's background does to its processes, and to their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
