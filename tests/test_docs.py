"""README and docs keep their word: commands, flags, links and example rows are real."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest

import reward_profiling
from reward_profiling.demo.verifying.verifiers import VERIFIERS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
ALL = "\n".join([README, *PAGES.values()])
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
    ours = re.sub(r"`gym [^`]*`", "", ALL)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", ours))
    named -= {"--help", "--start-in"}  # Prefect's

    assert {flag for flag in named if flag not in helps} == set()
    assert len(named) > 20


def test_every_command_is_named() -> None:
    for name in COMMANDS:
        assert f"`{name}" in README


def test_the_example_rows_are_scored() -> None:
    rows = [
        orjson.loads(line)
        for line in PAGES["task-rows.md"].splitlines()
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
        assert name in PAGES["failures.md"]


def test_the_readme_is_a_page() -> None:
    assert len(README.splitlines()) <= 150


def test_every_link_leads_somewhere() -> None:
    for folder, text in ((ROOT, README), *((ROOT / "docs", t) for t in PAGES.values())):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / target).exists(), target


def test_every_page_is_linked_from_the_readme() -> None:
    for name in PAGES:
        assert f"(docs/{name})" in README


def test_the_python_page_names_what_there_is() -> None:
    page = PAGES["python.md"]
    for module, name in re.findall(r"^\| `(\w+)\.(\w+)`", page, re.MULTILINE):
        assert hasattr(import_module(f"reward_profiling.tasks.{module}"), name)
    named = re.findall(r"^\| `(?:await |async with )?(\w+)\(", page, re.MULTILINE)
    assert len(named) == 9
    for name in named:
        assert name in reward_profiling.__all__


def test_every_file_of_an_output_is_named() -> None:
    for name in ("rollouts_insights.json", "rollouts_report.html", "rollouts_run.json"):
        assert name in README


def test_no_placeholder_is_left() -> None:
    assert "@@" not in ALL
