"""The README keeps its word: commands, flags and example rows are real."""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest

from reward_profiling.demo.verifiers import VERIFIERS

README = (Path(__file__).parents[1] / "README.md").read_text()
COMMANDS = (
    "demo", "run", "materialize", "collect", "aggregate", "merge", "profile", "inspect",
    "select", "compare", "report", "export", "deploy", "worker",
)  # fmt: skip
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def helps(command: Run) -> str:
    """Give the help of every command, wide enough for whole flags."""
    texts = [command(name, "--help", COLUMNS="200").stdout for name in COMMANDS]
    return "\n".join(texts)


def test_every_flag_that_is_named_exists(helps: str) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    named -= {"--help", "--no-serve", "--start-in"}  # Gym's and Prefect's

    assert {flag for flag in named if flag not in helps} == set()
    assert len(named) > 20


def test_every_command_is_named() -> None:
    for name in COMMANDS:
        assert f"`{name}" in README


def test_the_example_rows_are_scored_by_their_verifiers() -> None:
    rows = [
        orjson.loads(line)
        for line in README.splitlines()
        if line.startswith('{"responses_create_params"')
    ]
    answers = ("Answer: Paris", "Answer: 0.6667", "Answer: B")

    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        verify = VERIFIERS[row["agent_ref"]["name"].removesuffix("_agent")]
        assert verify(answer, row).reward == 1.0
        assert verify("Answer: 7", row).reward == 0.0


def test_the_faults_table_names_real_files() -> None:
    for name in ("rollouts.damaged.jsonl", "rollouts_failures.jsonl"):
        assert name in README
