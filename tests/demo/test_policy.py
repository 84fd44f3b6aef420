import math
from collections.abc import Mapping, Sequence
from statistics import mean, median

import anyio
import orjson
import pytest

from reward_profiling.demo.policy import ScriptedPolicy, guessed_script, read_scripts
from reward_profiling.demo.responses import Json, Reply, output_text
from reward_profiling.demo.verifying.verifiers import VERIFIERS

Rows = Sequence[Mapping[str, object]]

ROLLOUTS = 200


def replies(
    row: Mapping[str, object], seed: int = 0, count: int = ROLLOUTS
) -> list[Reply]:
    """Ask for the first rollouts of task 0."""
    policy, params = ScriptedPolicy(seed), row["responses_create_params"]
    assert isinstance(params, dict)

    async def asked() -> list[Reply]:
        keys = [{"_ng_task_index": 0, "_ng_rollout_index": one} for one in range(count)]
        return [await policy.reply({**row, **key}, params) for key in keys]

    return anyio.run(asked)


def rewards(row: Mapping[str, object], seed: int = 0) -> list[float]:
    """Verify the first rollouts of task 0."""
    agent = row["agent_ref"]
    assert isinstance(agent, dict)
    verify = VERIFIERS[agent["name"].removesuffix("_agent")]
    texts = [output_text(one.response) for one in replies(row, seed)]
    return [verify(text, row).reward for text in texts]


def tokens(reply: Reply) -> dict[str, int]:
    usage = reply.response["usage"]
    assert isinstance(usage, dict)
    return usage


def user_row(prompt: str, **params: object) -> Json:
    """Give a row of a user's own."""
    asked: Json = {"input": prompt, **params}
    agent = {"name": "exact_match_agent"}
    return {
        "responses_create_params": asked,
        "expected_answer": "four",
        "agent_ref": agent,
    }


def test_shipped_tasks_and_scripts_match(
    task_rows: Rows,
) -> None:
    assert {row["id"] for row in task_rows} == read_scripts().keys()
    assert len(task_rows) == 24


def test_scripted_texts_earn_what_they_claim(task_rows: Rows) -> None:
    scripts = read_scripts()
    for row in task_rows:
        script, agent = scripts[str(row["id"])], row["agent_ref"]
        assert isinstance(agent, dict)
        verify = VERIFIERS[agent["name"].removesuffix("_agent")]
        assert [verify(text, row).reward for text in script.right] == [1.0] * len(
            script.right
        )
        assert [verify(text, row).reward for text in script.wrong] == [0.0] * len(
            script.wrong
        )


def test_shipped_tasks_vary_in_difficulty(task_rows: Rows) -> None:
    rates = [mean(rewards(row)) for row in task_rows]

    assert rates.count(0.0) == 4
    assert rates.count(1.0) == 4
    assert sum(0.05 < rate < 0.95 for rate in rates) == 16


def test_a_task_is_solved_as_ability_says(task_rows: Rows) -> None:
    scripts = read_scripts()
    for row in task_rows:
        ability = scripts[str(row["id"])].ability
        assert mean(rewards(row)) == pytest.approx(ability, abs=0.15)


def test_a_rollout_always_has_the_same_answer(task_rows: Rows) -> None:
    row = task_rows[3]

    assert replies(row) == replies(row)
    assert rewards(row, seed=1) != rewards(row, seed=2)


def test_another_attempt_is_another_draw(task_rows: Rows) -> None:
    row = task_rows[3]

    first, second = replies(row), replies({**row, "_ng_attempt_index": 1})

    assert [one.response["id"] for one in first] != [
        one.response["id"] for one in second
    ]


def test_some_answers_are_cut_or_empty(task_rows: Rows) -> None:
    asked = [reply for row in task_rows for reply in replies(row)]
    cut = [one.response for one in asked if one.response["status"] == "incomplete"]
    empty = [one.response for one in asked if one.response["output"] == []]

    assert 0.015 < len(cut) / len(asked) < 0.045
    assert 0.005 < len(empty) / len(asked) < 0.025
    assert all(
        one["incomplete_details"] == {"reason": "max_output_tokens"} for one in cut
    )
    assert not any("Answer:" in output_text(one) for one in cut)


def test_wrong_answers_think_longer(task_rows: Rows) -> None:
    row = task_rows[3]
    counts = [tokens(one) for one in replies(row)]
    by_reward: dict[float, list[int]] = {0.0: [], 1.0: []}
    for count, reward in zip(counts, rewards(row), strict=True):
        by_reward[reward].append(count["output_tokens"])

    assert all(
        one["input_tokens"] + one["output_tokens"] == one["total_tokens"]
        for one in counts
    )
    assert median(by_reward[0.0]) > median(by_reward[1.0])


def test_latencies_are_mostly_short(task_rows: Rows) -> None:
    latencies = [one.latency_seconds for row in task_rows for one in replies(row)]
    num_slow = sum(latency >= 1 for latency in latencies)

    assert 0.1 <= min(latencies) < max(latencies) < 1.5
    assert 0.02 < num_slow / len(latencies) < 0.06
    assert not any(0.6 < latency < 1 for latency in latencies)


def test_a_limit_on_output_tokens_is_kept() -> None:
    limited = replies(user_row("2 + 2?", max_output_tokens=100))

    assert all(tokens(one)["output_tokens"] <= 100 for one in limited)
    assert any(one.response["status"] == "incomplete" for one in limited)


def test_an_unknown_row_gets_what_it_expects() -> None:
    abilities = [guessed_script(user_row(f"q{n}"), f"q{n}").ability for n in range(200)]
    solved = [mean(rewards(user_row(f"q{n}"))) for n in range(10)]

    assert 10 < abilities.count(0.0) < 50
    assert 10 < abilities.count(1.0) < 50
    assert solved == pytest.approx(abilities[:10], abs=0.15)
    assert all(math.isfinite(ability) for ability in abilities)


def test_tasks_are_compact_rows_of_gym(task_rows: Rows) -> None:
    for row in task_rows:
        assert next(iter(row)) == "responses_create_params"
        assert {"expected_answer", "topic", "id", "agent_ref"} <= row.keys()
    prompts = [orjson.dumps(row["responses_create_params"]) for row in task_rows]
    for shape in (b'"input":"', b'"system"', b'"developer"', b'"max_output_tokens"'):
        assert any(shape in prompt for prompt in prompts)
