"""Insights of real files, and of a run of the embedded environment."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import orjson
import pytest

from reward_profiling.collecting.open_shard import open_shard
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.shard_collection import collect_shard
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.document import Insights
from reward_profiling.insights.insights_file import read_insights
from reward_profiling.insights.insights_run import add_insights, write_insights
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.servers.options import EMBEDDED_TASKS
from reward_profiling.servers.readiness import read_servers
from reward_profiling.stop_scope import StopScope

if TYPE_CHECKING:
    from reward_profiling.profiling.finding import Finding

SCRIPTS = EMBEDDED_TASKS.with_name("scripts.json")
Row = dict[str, Any]


def row(task: int, rollout: int, **fields: object) -> Row:
    key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
    return {"agent_ref": {"name": "a"}, **fields, **key}


def answered(task: int, rollout: int, reward: object, text: str, **more: object) -> Row:
    content = [{"type": "output_text", "text": text}]
    message = {"type": "message", "role": "assistant", "content": content}
    response = {"status": "completed", "output": [message] if text else []}
    return row(task, rollout, reward=reward, response={**response, **more})


def output_of(folder: Path, records: list[Row], planned: list[Row]) -> RunFiles:
    files = RunFiles(folder / "r.jsonl")
    for path, rows in ((files.rollouts, records), (files.materialized_inputs, planned)):
        path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in rows))
    return files


def insights_of(files: RunFiles, **options: object) -> Insights:
    write_insights(files, ProfileOptions.made(options))
    return read_insights(files.insights)


def test_a_task_shows_how_its_prompt_begins(tmp_path: Path) -> None:
    message = {
        "role": "user",
        "content": [{"type": "input_text", "text": "Two\nlines"}],
    }
    params = [{"input": [{"role": "system", "content": "x"}, message]},
              {"input": "word " * 40}, {"input": []}]  # fmt: skip
    planned = [row(t, 0, responses_create_params=p) for t, p in enumerate(params)]

    found = insights_of(output_of(tmp_path, [answered(0, 0, 1.0, "x")], planned))

    labels = [task.label for task in found.tasks]
    assert labels[0] == "Two lines"
    assert labels[1] is not None
    assert len(labels[1]) <= 80
    assert labels[1].endswith("word…")
    assert labels[2] is None


def test_the_majority_uses_the_named_field(tmp_path: Path) -> None:
    records = [
        {**answered(0, r, reward, f"text {r}"), "extracted": answer}
        for r, (reward, answer) in enumerate(
            [(1.0, "42"), (1.0, " 42 "), (0.0, "7"), (0.0, None), (0.0, {"a": 1})]
        )
    ]
    files = output_of(tmp_path, records, [row(0, r) for r in range(5)])

    majority = insights_of(files, answer_field="extracted").run.passing.majority

    assert majority is not None
    assert (majority.pass_rate, majority.num_rollouts) == (1.0, 4)


def test_a_field_of_no_record_is_told(tmp_path: Path) -> None:
    files = output_of(tmp_path, [answered(0, 0, 1.0, "x")], [row(0, 0)])
    options = ProfileOptions(answer_field="extracted")

    profiled = RunSummary(planned=1, collected=1, scored=1, output=str(files.rollouts))

    summary = add_insights(profiled, files, options)

    assert "no scored record has the field 'extracted'" in summary.warnings[0]
    assert str(files.insights) in summary.files


def test_line_order_changes_no_byte(tmp_path: Path) -> None:
    random = Random(3)  # noqa: S311 - repeatable on purpose
    planned = [row(t, r) for t in range(6) for r in range(4)]
    records = [
        answered(t, r, random.random(), "x" * r, usage={"output_tokens": 10 * r + t})
        for t in range(6) for r in range(4)
    ]  # fmt: skip
    files = output_of(tmp_path, records, planned)
    write_insights(files, ProfileOptions())
    written = files.insights.read_bytes()

    random.shuffle(records)
    random.shuffle(planned)
    output_of(tmp_path, records, planned)
    write_insights(files, ProfileOptions())

    assert files.insights.read_bytes() == written


def test_timings_become_a_completion_curve(tmp_path: Path) -> None:
    files = output_of(tmp_path, [answered(0, 0, 1.0, "x")], [row(0, 0)])
    lines = [{**row(0, r), "started": 100.0 + r, "seconds": 2.0} for r in range(1000)]
    files.timings.write_bytes(
        b"".join(orjson.dumps(line) + b"\n" for line in lines) + b"torn"
    )

    curve = insights_of(files).completion

    assert len(curve) == 200
    assert (curve[0].seconds, curve[0].finished) == (6.0, 5)
    assert (curve[-1].seconds, curve[-1].finished) == (1001.0, 1000)


@pytest.fixture
def demo(
    tmp_path: Path, servers: httpx.Client
) -> Callable[..., tuple[RunFiles, Insights]]:
    """Give a way to run the embedded environment with facts planted in it."""

    def run(params: Row, **knobs: object) -> tuple[RunFiles, Insights]:
        servers.post("/_knobs", json=knobs).raise_for_status()
        files = RunFiles(tmp_path / "r.jsonl")
        plan = PlanOptions(num_repeats=8, responses_create_params=params)
        materialize(check_input(EMBEDDED_TASKS, plan), files)
        chosen = CollectOptions(retries=0)

        async def collect() -> None:
            known = await read_servers(str(servers.base_url).rstrip("/"))
            shard = open_shard(files, 0, 1, chosen)
            await collect_shard(shard, known, chosen, StopScope())

        anyio.run(collect)
        return files, insights_of(files)

    return run


def test_the_demo_tells_its_planted_facts(
    demo: Callable[..., tuple[RunFiles, Insights]],
) -> None:
    scripts = orjson.loads(SCRIPTS.read_bytes())
    ids = [
        orjson.loads(line)["id"] for line in EMBEDDED_TASKS.read_bytes().splitlines()
    ]
    hopeless = {t for t, name in enumerate(ids) if scripts[name]["ability"] == 0}
    easy = {t for t, name in enumerate(ids) if scripts[name]["ability"] == 1}

    _, found = demo(
        {"max_output_tokens": 250},
        constant_match="multiple_choice_agent", constant_reward=0.5,
    )  # fmt: skip

    others = [t for t in found.tasks if t.agent != "multiple_choice_agent"]
    never = {t.task_index for t in others if t.task_class == "never"}
    always = {t.task_index for t in others if t.task_class == "always"}
    judged = {t.task_index for t in others}
    assert hopeless & judged <= never
    assert always <= easy
    told: dict[tuple[str, str | None], Finding] = {
        (f.name, f.agent): f for f in found.findings
    }
    constant = told["constant_reward", "multiple_choice_agent"]
    assert (constant.severity, constant.evidence["value"]) == ("critical", 0.5)
    assert [agent for name, agent in told if name == "constant_reward"] == [
        "multiple_choice_agent"
    ]
    cut = told["truncated_answers", "number_match_agent"]
    assert cut.severity == "warning"
    rates = cut.evidence["pass_rate_truncated"], cut.evidence["pass_rate_finished"]
    assert isinstance(rates[0], float)
    assert isinstance(rates[1], float)
    assert rates[0] < rates[1]
    assert found.model == "scripted-policy"
    assert found.completion[-1].finished == 192


def test_shards_give_the_same_bytes(tmp_path: Path) -> None:
    planned = [row(t, r) for t in range(5) for r in range(4)]
    records = [
        answered(t, r, float((t + r) % 3 == 0), f"x{t}{r}")
        for t in range(5) for r in range(4)
    ]  # fmt: skip
    files = output_of(tmp_path, records, planned)
    write_insights(files, ProfileOptions(answer_field="reward"))
    written = files.insights.read_bytes()
    shards = [tmp_path / f"r-shard-{index}-of-3.jsonl" for index in range(3)]
    for index, path in enumerate(shards):
        own = records[index::3]
        path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in own))

    write_insights(files, ProfileOptions(answer_field="reward"), rollouts=shards)

    assert files.insights.read_bytes() == written


def test_the_terminal_fits_eighty_columns(
    tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    planned = [row(t, r) for t in range(6) for r in range(4)]
    records = [answered(t, r, 0.5, f"{t} {r}") for t in range(6) for r in range(4)]
    output_of(tmp_path, records, planned)

    shown = command("profile", "--rollouts", "r.jsonl", "--insights")
    strict = command("profile", "--rollouts", "r.jsonl", "--strict", "critical")

    assert (shown.returncode, strict.returncode) == (0, 4), shown.stderr
    assert "mean reward   0.500 (n=6 tasks), 95 % interval" in shown.stdout
    assert "critical      a: all 24 rewards of 6 tasks are 0.5" in shown.stdout
    assert "give the verifier a right and a wrong answer" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
