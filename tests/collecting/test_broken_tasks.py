"""A few tasks that cannot work, among many that do: they fail, and stop nothing."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import orjson
import pytest

from tests.observing import asked, keys, planned, turn

Run = Callable[..., CompletedProcess[str]]
BROKEN = "a book of a million words"
TOO_LONG = (
    '{"error":{"message":"This model\'s maximum context length is 8192 tokens.'
    ' However, your messages resulted in 90001 tokens.","code":400}}'
)


@pytest.fixture
def output(tmp_path: Path, command: Run) -> Path:
    """Give an output with 30 tasks of 8 repeats planned; the first two are broken."""
    rows = [
        {
            "responses_create_params": {
                "input": [
                    {
                        "role": "user",
                        "content": f"{BROKEN if task < 2 else 'What is 2 + 2?'} {task}",
                    }
                ]
            },
            "expected_answer": "4",
            "agent_ref": {"name": "number_match_agent"},
        }
        for task in range(30)
    ]
    (tmp_path / "tasks.jsonl").write_bytes(
        b"".join(orjson.dumps(r) + b"\n" for r in rows)
    )
    line = ("materialize", "--input", "tasks.jsonl", "--output", "r.jsonl")
    assert command(*line, "--num-repeats", "8").returncode == 0
    return tmp_path / "r.jsonl"


def collect(command: Run, output: Path, url: object) -> CompletedProcess[str]:
    return command(
        "collect", "--output", output, "--head-url", str(url),
        "--retries", "0", "--concurrency", "4",
    )  # fmt: skip


def failures(output: Path) -> list[dict[str, object]]:
    path = output.with_name("r_failures.jsonl")
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("status", [400, 500])
def test_tasks_that_are_too_long_stop_nothing(
    output: Path, servers: httpx.Client, command: Run, status: int
) -> None:
    turn(servers, fail_status=status, fail_match=BROKEN, fail_body=TOO_LONG)

    done = collect(command, output, servers.base_url)

    assert done.returncode == 3, done.stderr
    assert keys(output).total() == 224
    assert set(asked(servers).values()) == {1}
    classes = [failure["_ng_failure_class"] for failure in failures(output)]
    assert classes == ["context_length_exceeded"] * 16
    profiled = command("profile", "--rollouts", output, "--allow-partial", "--insights")
    said = profiled.stdout + profiled.stderr
    assert "16 rollouts of 2 of 30 tasks (6.7 %)" in " ".join(said.split())
    insights = orjson.loads(output.with_name("r_insights.json").read_bytes())
    assert insights["run"]["reward"]["num_tasks"] == 28
    assert insights["run"]["coverage"]["failures_by_class"] == {
        "context_length_exceeded": 16
    }


@pytest.mark.parametrize("body", ['"the sandbox is gone"', ""])
def test_tasks_that_break_the_verifier_come_to_an_end(
    output: Path, servers: httpx.Client, command: Run, body: str
) -> None:
    turn(servers, fail_status=500, fail_match=BROKEN, fail_body=body)

    codes = [collect(command, output, servers.base_url).returncode for _ in range(4)]

    assert codes == [3, 3, 3, 3]
    assert keys(output).total() == 224
    assert len(failures(output)) == 16 * 3  # then they are given up
    assert sum(asked(servers).values()) == 224 + 16 * 3


def test_a_bad_key_stops_at_once_and_charges_nothing(
    output: Path, servers: httpx.Client, command: Run
) -> None:
    turn(servers, fail_status=401, fail_body='"no such key"')

    done = collect(command, output, servers.base_url)

    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "tasks in a row failed in the same way" in said
    assert "They do not count as attempts" in said
    assert "--identical-failures raises the limit of 10" in said
    assert failures(output) == []
    assert sum(asked(servers).values()) < 10 * 8 + 4
    turn(servers, fail_status=0)
    assert collect(command, output, servers.base_url).returncode == 0
    assert keys(output) == planned(output)
