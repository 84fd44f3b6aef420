import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

import orjson
import pytest
from pydantic import TypeAdapter

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.choosing.selection import SelectOptions
from reward_profiling.cli import app
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.spreading.spread import SpreadOptions
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.options import EMBEDDED_TASKS, ServerOptions
from reward_profiling.values import Checked

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
OF_MATERIALIZE = [
    "--num-repeats", '{"_default": 2, "b": 3}',
    "--num-repeats-add-seed", "--interleave-repeats",
    "--limit", "3",
    "--agent-map", '{"exact_match_agent": "a"}',
    "--fan-out", '{"exact_match_agent": ["b", "c"]}',
    "--responses-create-params", '{"temperature": 0.5, "metadata": {"team": "x"}}',
]  # fmt: skip
OF_COLLECT = [
    "--concurrency", "7", "--num-shards", "2", "--rollout-timeout", "1.5m",
    "--retries", "0", "--max-attempts", "2",
]  # fmt: skip


def words(text: str) -> str:
    """Return text without its breaks, and without what marks code in it."""
    return " ".join(text.replace("`", "").split())


def documented(*values: type[Checked]) -> Iterable[str]:
    for value in values:
        described = TypeAdapter(value).json_schema()["properties"]
        assert described.keys() == {field.name for field in fields(value)}
        for name, field in described.items():
            yield f"--{name.replace('_', '-')}"
            yield words(field.get("description", "no documentation"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("run", [PlanOptions, CollectOptions, ProfileOptions, ServerOptions,
                 AdaptiveOptions, SpreadOptions, AggregateOptions, BaselineOptions]),
        ("materialize", [PlanOptions]),
        ("collect", [CollectOptions, AdaptiveOptions]),
        ("aggregate", [AggregateOptions]),
        ("profile", [ProfileOptions]),
        ("select", [SelectOptions]),
        ("compare", [CompareOptions]),
    ],
)  # fmt: skip
def test_help_documents_each_field(
    command: Run, name: str, values: list[type[Checked]]
) -> None:
    shown = words(command(name, "--help").stdout)

    assert [said for said in documented(*values) if said not in shown] == []


@pytest.mark.parametrize("name", ["demo", "inspect", "run"])
def test_help_fits_eighty_columns(command: Run, name: str) -> None:
    shown = command(name, "--help")

    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_run_options_are_shown_in_groups(command: Run) -> None:
    shown = command("run", "--help").stdout.splitlines()

    titles = [line for line in shown[4:] if line and not line.startswith(" ")]
    assert titles == [
        "Input and plan", "Servers", "Collection", "Adaptive repeats",
        "Spreading over machines", "The servers' own metrics", "Profile", "Baseline",
    ]  # fmt: skip
    assert shown.index("Servers") > shown.index("Input and plan") + 2


def test_commands_are_in_workflow_order(command: Run) -> None:
    shown = command("--help").stdout

    listed = re.findall(r"^  ([a-z]+)  +\S", shown, re.MULTILINE)
    assert listed == [
        "demo", "run", "materialize", "collect", "aggregate", "merge", "profile",
        "inspect", "report", "select", "compare", "export", "deploy", "worker",
    ]  # fmt: skip


def test_the_version_is_told(command: Run) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", command("--version").stdout)


def test_materialize_takes_every_option(command: Run, tmp_path: Path) -> None:
    done = command(
        "materialize", "--input", TASKS, "--output", "r.jsonl", *OF_MATERIALIZE
    )

    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "r_materialized_inputs.jsonl").read_bytes().splitlines()
    first = orjson.loads(lines[0])
    assert len(lines) == 3 * (3 + 2)
    assert first["agent_ref"] == {"name": "b"}
    assert first["responses_create_params"]["temperature"] == 0.5
    assert first["responses_create_params"]["metadata"] == {
        "team": "x",
        "extra_body": '{"seed": 0}',
    }


@pytest.mark.parametrize(
    "options", [["--agent-name", "everyone"], ["--default-agent", "everyone"]]
)
def test_rows_can_be_given_an_agent(
    command: Run, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "t.jsonl").write_text('{"responses_create_params": {"input": "?"}}')

    done = command("materialize", "--input", "t.jsonl", "--output", "r.jsonl", *options)

    assert done.returncode == 0, done.stderr
    plan = (tmp_path / "r_materialized_inputs.jsonl").read_bytes()
    assert orjson.loads(plan)["agent_ref"] == {"name": "everyone"}


def test_run_takes_the_options_of_all_steps(command: Run, tmp_path: Path) -> None:
    done = command(
        "run", "--input", "absent.jsonl", "--output", "r.jsonl", "--demo",
        *OF_MATERIALIZE, *OF_COLLECT, "--pass-threshold", "0.5",
        "--model-url", "http://127.0.0.1:9/v1", "--model", "m",
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: absent.jsonl does not exist in {tmp_path}\n"


def test_run_takes_several_configurations(command: Run, tmp_path: Path) -> None:
    done = command(
        "run", "--input", "absent.jsonl", "--output", "r.jsonl",
        "--gym-config", "a.yaml", "b.yaml", "--gym-config", "c.yaml",
    )  # fmt: skip

    assert done.stderr == f"error: absent.jsonl does not exist in {tmp_path}\n"


def test_collect_takes_every_option(command: Run) -> None:
    done = command(
        "collect", "--output", "r.jsonl", "--head-url", "http://127.0.0.1:9",
        *OF_COLLECT,
    )  # fmt: skip

    assert done.returncode == 2
    assert "r_materialized_inputs.jsonl does not exist" in done.stderr


MATERIALIZE = ["materialize", "--input", TASKS, "--output", "r.jsonl"]
RUN = ["run", "--output", "r.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*MATERIALIZE, "--num-repeat", "2"], "Did you mean --num-repeats?"),
        ([*RUN, "--demo", "--concurency", "2"], "Did you mean --concurrency?"),
        (["inspct", "r.jsonl"], 'Did you mean "inspect"?'),
        (["inspect"], "OUTPUT"),
        (["collect", "--output", "r.jsonl"], "--head-url"),
        ([*MATERIALIZE, "--limit", "0"], "--limit must be at least 1 (got 0)"),
        ([*RUN, "--demo", "--limit", "-1"], "--limit must be at least 1 (got -1)"),
        (
            [*RUN, "--demo", "--concurrency", "x"],
            "--concurrency must be a whole number (got 'x')",
        ),
        ([*MATERIALIZE, "--num-repeats", "0"], "--num-repeats must be at least 1"),
        ([*MATERIALIZE, "--agent-map", "[1]"], "--agent-map must be a JSON object"),
        ([*MATERIALIZE, "--fan-out", '{"a": []}'], "fan_out['a'] must list"),
        ([*MATERIALIZE, "--agent-map", '{"a'], "--agent-map must be a JSON object"),
        (
            [*MATERIALIZE, "--responses-create-params", "3"],
            "--responses-create-params must be a JSON object (got '3')",
        ),
        (
            RUN,
            "give one of --head-url, --gym-config, --gym-resources-server and --demo",
        ),
        ([*RUN, "--demo", "--head-url", "http://h"], "give exactly one of head_url"),
        ([*RUN, "--head-url", "http://h"], "input is required"),
        ([*RUN, "--demo", "--model-url", "http://h"], "needs the name of its model"),
        ([*RUN, "--demo", "--prompt-config", "p"], "p does not exist"),
        ([*MATERIALIZE, "--prompt-config", "p"], "p does not exist"),
        ([*MATERIALIZE, "--skills", "s"], "skills s cannot be read: No such file"),
        ([*MATERIALIZE, "--prompt-config", TASKS], "tasks.jsonl is not YAML"),
        ([*MATERIALIZE, "--environment-routing-mode", "x"], "mode must be 'agent', "),
        (
            [*RUN, "--demo", "--environment-routing-mode", "legacy"],
            "the routing mode legacy needs environment_server_name",
        ),
        (["demo", "--num-repeats", "0"], "--num-repeats must be at least 1 (got 0)"),
        (
            [*RUN, "--demo", "--time-budget", "soon"],
            "--time-budget: 'soon' is not a dura",
        ),
        ([*RUN, "--demo", "--max-failures", "x"], "--max-failures: 'x' is neither a"),
        ([*RUN, "--demo", "--shard", "4"], "--shard must be I/N, such as 0/4"),
        ([*RUN, "--demo", "--target-width", "1"], "--target-width must be less than 1"),
        ([*RUN, "--demo", "--answer-field", ""], "--answer-field must not be empty"),
        (
            ["run", "--demo", "--output", "{x}.jsonl"],
            "--output: Unknown placeholder {x}",
        ),
    ],
)
def test_wrong_options_are_told_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    code = app.run(arguments)

    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert shown.err.startswith("error: ")
    assert said in shown.err
    assert list(tmp_path.iterdir()) == []


def test_all_wrong_options_are_told_at_once(command: Run) -> None:
    done = command(*MATERIALIZE, "--limit", "0", "--fan-out", "x", "--skills", "")

    assert done.stderr.splitlines() == [
        "error: --limit must be at least 1 (got 0)",
        "--fan-out must be a JSON object (got 'x')",
        "--skills must not be empty",
    ]


def test_no_traceback_reaches_a_person(command: Run) -> None:
    done = command("run", "--demo", "--output", "r.jsonl", "--concurency", "2")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: Unknown option: --concurency. Did you mean --concurrency?\n"
    )
