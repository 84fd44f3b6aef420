"""What is printed commands no terminal, whoever wrote it."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest

from reward_profiling.cli.terminal.screen import Screen
from reward_profiling.servers.options import EMBEDDED_TASKS

HOSTILE = "agent\x1b[2J\x1b]52;c;aGk=\x07\u202e"
SHOWN = r"agent\x1b[2J\x1b]52;c;aGk=\x07\u202e"


@pytest.mark.parametrize("forced", ["", "1"])
def test_a_text_does_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, forced: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)
    screen = Screen("stdout")

    screen.print(HOSTILE)
    screen.print_table(["name", "n"], [[HOSTILE, "3"]])

    printed = capsys.readouterr().out
    assert printed.count(SHOWN) == 2
    assert "\x1b[2J" not in printed
    assert "\x1b]" not in printed


def test_names_of_agents_are_shown_as_text(
    command: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    rows = [orjson.loads(row) for row in EMBEDDED_TASKS.read_bytes().splitlines()]
    for row in rows:
        row["agent_ref"]["name"] = HOSTILE
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    command("materialize", "--input", "rows.jsonl", "--output", "r.jsonl")
    plan = (tmp_path / "r_materialized_inputs.jsonl").read_bytes().splitlines()
    records = [{**orjson.loads(row), "reward": 1.0} for row in plan]
    (tmp_path / "r.jsonl").write_bytes(
        b"".join(orjson.dumps(one) + b"\n" for one in records)
    )

    for line in (["profile", "--insights", "--rollouts"], ["inspect"]):
        done = command(*line, "r.jsonl")
        assert done.returncode == 0, done.stderr
        assert SHOWN in done.stdout
        assert "\x1b" not in done.stdout + done.stderr
