"""What is planned, and what an output that is already there allows."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_profiling.errors import ConfigError, PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_summary import PlanSummary
from tests.planning.plans_of_rows import (
    ASKED,
    MADE,
    ROUTES,
    A,
    B,
    C,
    collect_one,
    digests,
    output,
    plan_lines,
    planned,
    prompt,
)

LEGACY = {"environment_routing_mode": "legacy", "environment_server_name": "LS"}


def refused(folder: Path, content: bytes, **options: Any) -> str:  # noqa: ANN401
    """Return the refusal's message, and hold it to touching nothing."""
    before = digests(folder / "out")
    with pytest.raises(PlanChangedError) as raised:
        planned(folder, content, **options)
    assert digests(folder / "out") == before
    return str(raised.value)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_output_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        RunFiles(Path(path))


def test_the_same_command_changes_nothing(tmp_path: Path) -> None:
    planned(tmp_path, A + b"\n" + B, num_repeats=3)
    collect_one(tmp_path)
    before = digests(tmp_path / "out")

    found = planned(tmp_path, A + b"\n" + B, num_repeats=3)

    assert digests(tmp_path / "out") == before
    assert found.num_new == 0


def test_a_fresh_run_needs_a_new_output(tmp_path: Path) -> None:
    planned(tmp_path, A)
    collect_one(tmp_path)

    message = refused(tmp_path, B)

    assert "holds rollouts of another plan; nothing was changed" in message
    assert 'responses_create_params.input: "a" → "b"' in message


def test_a_changed_setting_is_refused(tmp_path: Path) -> None:
    planned(tmp_path, A, responses_create_params={"temperature": 0})
    collect_one(tmp_path)

    message = refused(tmp_path, A, responses_create_params={"temperature": 1})

    assert "responses_create_params.temperature: 0 → 1" in message


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"agent_name": "z"}, 'agent_name: null → "z"'),
        ({"num_repeats": 1}, "num_repeats: 2 → 1"),
        ({"num_repeats": 2, "num_repeats_add_seed": True}, "add_seed: false → true"),
        ({"num_repeats": 2, "limit": 1}, "limit: null → 1"),
    ],
)
def test_a_plan_may_not_lose_rollouts(
    options: dict[str, Any], change: str, tmp_path: Path
) -> None:
    planned(tmp_path, A + b"\n" + B, num_repeats=2)
    collect_one(tmp_path)

    assert change in refused(tmp_path, A + b"\n" + B, **options)


def test_dropped_rollouts_are_counted(tmp_path: Path) -> None:
    planned(tmp_path, A + b"\n" + B, num_repeats=3)
    collect_one(tmp_path)

    message = refused(tmp_path, A, num_repeats=2)

    assert "4 planned rollouts would be dropped" in message


def test_repeats_and_new_rows_extend_the_plan(tmp_path: Path) -> None:
    planned(tmp_path, A + b"\n" + B, num_repeats=2)
    collect_one(tmp_path)
    before = set(plan_lines(tmp_path))

    found = planned(tmp_path, b"\n".join([A, B, C]), num_repeats=3)

    assert (found.num_rollouts, found.num_new) == (9, 5)
    assert before < set(plan_lines(tmp_path))


def test_interleaving_may_change(tmp_path: Path) -> None:
    planned(tmp_path, A + b"\n" + B, num_repeats=2)
    collect_one(tmp_path)
    before = plan_lines(tmp_path)

    found = planned(tmp_path, A + b"\n" + B, num_repeats=2, interleave_repeats=True)

    assert found.num_new == 0
    assert sorted(plan_lines(tmp_path)) == sorted(before) != plan_lines(tmp_path)


def test_an_uncollected_plan_is_replaceable(tmp_path: Path) -> None:
    planned(tmp_path, A)

    planned(tmp_path, B)

    assert [b'"input":"b"' in line for line in plan_lines(tmp_path)] == [True]


@pytest.mark.parametrize(
    "name",
    ["rollouts.jsonl", "rollouts_failures.jsonl", "rollouts-shard-0-of-2.jsonl"],
)
def test_rollouts_without_a_plan_are_kept(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(b"{}\n")

    assert "its plan rollouts_materialized_inputs.jsonl is missing" in (
        refused(tmp_path, A)
    )


def test_servers_resolve_task_sources(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"responses_create_params":{},"task_source":"s"}\n' + A)
    asked: list[frozenset[str]] = []

    def resolve(sources: frozenset[str]) -> dict[str, str]:
        asked.append(sources)
        return {"s": "solver"}

    materialize(check_input(path, PlanOptions()), output(tmp_path), resolve)

    assert asked == [frozenset({"s"})]
    assert plan_lines(tmp_path)[0].endswith(
        b'"_ng_rollout_index":0,"agent_ref":{"name":"solver"}}'
    )


def test_the_manifest_tells_a_plans_origin(tmp_path: Path) -> None:
    planned(tmp_path, A + b"\r\n" + B, num_repeats=2)

    found = orjson.loads(output(tmp_path).run.read_bytes())

    digest = sha256(A + b"\n" + B + b"\n").hexdigest()
    assert found["input"]["sha256"] == digest
    assert found["settings"]["num_repeats"] == 2
    assert found["plan"] == {"num_tasks": 2, "num_rollouts": 4}


def test_a_fanned_out_plan_grows_at_its_end(tmp_path: Path) -> None:
    fan_out = {"x": ["p", "q"]}
    planned(tmp_path, A, num_repeats=2, fan_out=fan_out)
    before = plan_lines(tmp_path)
    (tmp_path / "r.jsonl").write_bytes(b"paid for")

    found = planned(tmp_path, A, num_repeats=3, fan_out=fan_out)

    after = plan_lines(tmp_path)
    assert (found.num_rollouts, found.num_new) == (6, 2)
    assert set(before) < set(after)
    rows = [orjson.loads(line) for line in after]
    by_agent = [(row["agent_ref"]["name"], row["_ng_rollout_index"]) for row in rows]
    assert by_agent == [("p", 0), ("p", 1), ("p", 4), ("q", 2), ("q", 3), ("q", 5)]


def test_a_run_includes_its_prompt_template(tmp_path: Path) -> None:
    template = prompt(tmp_path, "user: 'Q: {question}'\nsystem: sys\n")
    planned(tmp_path, ASKED, prompt_config=template, agent_name="a")

    line = orjson.loads(plan_lines(tmp_path)[0])
    settings = orjson.loads(output(tmp_path).run.read_bytes())["settings"]
    assert line["responses_create_params"]["input"][1]["content"] == "Q: hi"
    assert settings["prompt_config"] == {"user": "Q: {question}", "system": "sys"}


def test_a_changed_template_is_refused(tmp_path: Path) -> None:
    options = {
        "prompt_config": prompt(tmp_path, "user: 'old {question}'"),
        "agent_name": "a",
    }
    planned(tmp_path, ASKED, **options)
    collect_one(tmp_path)
    prompt(tmp_path, "user: 'new {question}'")

    message = refused(tmp_path, ASKED, **options)

    assert 'prompt_config.user: "old {question}" → "new {question}"' in message


def test_a_resumed_template_may_have_moved(tmp_path: Path) -> None:
    content = "user: '{question}'"
    planned(tmp_path, ASKED, prompt_config=prompt(tmp_path, content), agent_name="a")
    collect_one(tmp_path)
    moved = prompt(tmp_path, content, "moved.yaml")

    found = planned(tmp_path, ASKED, prompt_config=moved, agent_name="a")

    assert found.num_new == 0


def test_changed_skills_are_refused(tmp_path: Path) -> None:
    skill = tmp_path / "sk" / "one" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: one\n---\n")
    planned(tmp_path, A, skills=str(tmp_path / "sk"))
    old = orjson.loads(plan_lines(tmp_path)[0])["skills_ref"]["hash"]
    collect_one(tmp_path)
    skill.write_text("---\nname: one\n---\nmore")

    assert f'skills.hash: "{old}" → ' in refused(
        tmp_path, A, skills=str(tmp_path / "sk")
    )


def test_an_older_plan_may_lack_options(
    tmp_path: Path,
) -> None:
    planned(tmp_path, A)
    collect_one(tmp_path)
    manifest = orjson.loads(output(tmp_path).run.read_bytes())
    del manifest["settings"]["environment_routing_mode"]
    output(tmp_path).run.write_bytes(orjson.dumps(manifest))

    assert "environment_routing_mode" not in refused(tmp_path, B)


@pytest.mark.parametrize("content", [MADE % 1, A])
def test_a_growing_server_plan_keeps_keys(content: bytes, tmp_path: Path) -> None:
    options = {**ROUTES, **LEGACY}
    planned(tmp_path, content, num_repeats=2, **options)
    collect_one(tmp_path)
    before = set(plan_lines(tmp_path))

    found = planned(tmp_path, content + b"\n" + B, num_repeats=3, **options)

    assert (found.num_rollouts, found.num_new) == (6, 4)
    assert before < set(plan_lines(tmp_path))


def by_server(folder: Path, content: bytes, **options: Any) -> PlanSummary:  # noqa: ANN401
    """Plan where the servers can be asked: LS stands for the agent solver."""
    path = folder / "in.jsonl"
    path.write_bytes(content)
    checked = check_input(path, PlanOptions(**options))

    def attribute(servers: frozenset[str]) -> dict[str, str]:
        return {"LS": "solver"} if "LS" in servers else {}

    return materialize(checked, output(folder), attribute=attribute)


FLAT = b'{"responses_create_params":{}}'


def test_a_servers_rows_get_its_agent(tmp_path: Path) -> None:
    by_server(tmp_path, FLAT + b"\n" + A + b"\n" + MADE % 1, **ROUTES, **LEGACY)

    lines = plan_lines(tmp_path)
    assert lines[0].endswith(b'"_ng_rollout_index":0,"agent_ref":{"name":"solver"}}')
    assert orjson.loads(lines[1])["agent_ref"] == {"name": "x"}
    assert "agent_ref" not in orjson.loads(lines[2])


def test_a_server_without_agent_gives_none(tmp_path: Path) -> None:
    by_server(
        tmp_path, FLAT, environment_routing_mode="legacy", environment_server_name="no"
    )

    assert "agent_ref" not in orjson.loads(plan_lines(tmp_path)[0])


def test_a_plan_without_agents_stays_so(
    tmp_path: Path,
) -> None:
    planned(tmp_path, FLAT, num_repeats=1, **LEGACY)
    collect_one(tmp_path)
    (before,) = plan_lines(tmp_path)

    found = by_server(tmp_path, FLAT, num_repeats=2, **LEGACY)

    old, new = plan_lines(tmp_path)
    assert (old, found.num_new) == (before, 1)
    assert orjson.loads(new)["agent_ref"] == {"name": "solver"}


def test_an_uncollected_plan_gets_its_agents(tmp_path: Path) -> None:
    planned(tmp_path, FLAT, **LEGACY)

    by_server(tmp_path, FLAT, **LEGACY)

    assert b'"agent_ref":{"name":"solver"}' in plan_lines(tmp_path)[0]


def test_a_server_plan_keeps_attributed_rows(tmp_path: Path) -> None:
    by_server(tmp_path, FLAT, num_repeats=2, **LEGACY)
    collect_one(tmp_path)
    before = plan_lines(tmp_path)

    by_server(tmp_path, FLAT, num_repeats=3, **LEGACY)

    assert plan_lines(tmp_path)[:2] == before
