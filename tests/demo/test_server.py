import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import aiohttp
import anyio
import httpx
import orjson
import pytest

Rows = Sequence[Mapping[str, object]]

AT_ONCE = 500


def keyed(
    row: Mapping[str, object], task: int = 0, rollout: int = 0
) -> dict[str, object]:
    """Stamp a row as materialization does."""
    return {**row, "_ng_task_index": task, "_ng_rollout_index": rollout}


@pytest.mark.parametrize("path", ["/", "/livez", "/readyz", "/healthz", "/health"])
def test_every_health_path_is_ok(demo: httpx.Client, path: str) -> None:
    assert demo.get(path).json() == {"status": "ok"}


def test_the_configuration_leads_to_a_server(
    demo: httpx.Client,
) -> None:
    config = orjson.loads(demo.get("/global_config_dict_yaml").json())

    for name in ("exact_match", "number_match", "multiple_choice"):
        server = config[f"{name}_environment_server"]["environment_servers"][
            "legacy_agent"
        ]
        agent = config[server["agent_server"]["name"]]["responses_api_agents"]
        resources = config[agent["scripted_agent"]["resources_server"]["name"]]
        assert resources["resources_servers"][name]["domain"] == "knowledge"
        assert f"http://{server['host']}:{server['port']}" == str(demo.base_url)


def test_all_nine_servers_are_listed(demo: httpx.Client) -> None:
    instances = demo.get("/server_instances").json()

    assert len(instances) == 9
    assert {one["url"] for one in instances} == {str(demo.base_url)}
    assert {one["server_type"] for one in instances} == {
        "environment_servers",
        "resources_servers",
        "responses_api_agents",
    }


def test_it_answers_like_a_native_agent(demo: httpx.Client, task_rows: Rows) -> None:
    row = task_rows[0]

    reply = demo.post("/run", json=keyed(row)).json()

    assert list(reply) == [
        "responses_create_params",
        "response",
        "reward",
        "mask_sample",
        "failure_kind",
        "failure_reason",
        "expected_answer",
        "extracted_answer",
    ]
    assert reply["responses_create_params"] == row["responses_create_params"]
    assert reply["response"]["object"] == "response"
    assert (reply["reward"], reply["mask_sample"]) == (1.0, False)
    assert reply["expected_answer"] == reply["extracted_answer"] == "Canberra"


def test_every_shipped_task_gets_a_reward(demo: httpx.Client, task_rows: Rows) -> None:
    for index, row in enumerate(task_rows):
        reply = demo.post("/run", json=keyed(row, index))
        assert reply.status_code == 200
        assert reply.json()["reward"] in {0.0, 1.0}


def test_equal_requests_get_equal_bytes(demo: httpx.Client, task_rows: Rows) -> None:
    body = keyed(task_rows[9], 9, 3)

    assert demo.post("/run", json=body).content == demo.post("/run", json=body).content


def test_another_seed_answers_otherwise(
    demo: httpx.Client, launch: Callable[..., httpx.Client], task_rows: Rows
) -> None:
    other = launch("--seed", "1", "--latency-scale", "0")
    bodies = [keyed(task_rows[9], 9, rollout) for rollout in range(20)]

    here = [demo.post("/run", json=body).json()["reward"] for body in bodies]
    there = [other.post("/run", json=body).json()["reward"] for body in bodies]

    assert here != there


def test_an_expected_number_is_no_metric(demo: httpx.Client) -> None:
    row = {
        "responses_create_params": {"input": "2 + 2?"},
        "expected_answer": 4,
        "agent_ref": {"name": "number_match_agent"},
    }

    assert demo.post("/run", json=row).json()["expected_answer"] == "4"


@pytest.mark.parametrize("agent", [None, {}, {"name": "nobody"}, "exact_match_agent"])
def test_an_unknown_agent_is_not_found(
    demo: httpx.Client, task_rows: Rows, agent: object
) -> None:
    reply = demo.post("/run", json={**task_rows[0], "agent_ref": agent})

    assert reply.status_code == 404
    assert "no agent is called" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("{", ["body", 1]),
        ("[]", ["body"]),
        ("{}", ["body", "responses_create_params"]),
        ('{"responses_create_params":1}', ["body", "responses_create_params"]),
        (
            '{"responses_create_params":{}}',
            ["body", "responses_create_params", "input"],
        ),
    ],
)
def test_a_body_must_be_a_row(
    demo: httpx.Client, body: str, place: list[object]
) -> None:
    reply = demo.post("/run", content=body)

    assert reply.status_code == 422
    assert reply.json()["detail"][0]["loc"] == place


@pytest.mark.parametrize("expected", [None, [], {"a": 1}])
def test_a_row_must_have_an_expectation(
    demo: httpx.Client, task_rows: Rows, expected: object
) -> None:
    reply = demo.post("/run", json={**task_rows[0], "expected_answer": expected})

    assert reply.status_code == 422
    assert "expected_answer" in reply.text


def test_aggregate_metrics_profiles_its_rows(
    demo: httpx.Client, task_rows: Rows
) -> None:
    replies = [
        demo.post("/run", json=keyed(task_rows[0], 0, one)).json() for one in (0, 1)
    ]
    rows = [keyed(reply, 0, one) for one, reply in enumerate(replies)]

    reply = demo.post("/aggregate_metrics", json={"verify_responses": rows})

    assert reply.json()["agent_metrics"]["mean/reward"] == 1.0


def test_an_aggregate_request_must_have_rows(demo: httpx.Client) -> None:
    assert demo.post("/aggregate_metrics", json={}).status_code == 422


def test_an_unhandled_error_is_a_500(demo: httpx.Client) -> None:
    reply = demo.post("/aggregate_metrics", json={"verify_responses": [1]})

    assert reply.status_code == 500
    assert isinstance(reply.json(), str)


async def statuses_at_once(url: str, body: bytes) -> list[int]:
    """Post the same row many times over, all at once."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=connector) as session:

        async def status() -> int:
            async with session.post("/run", data=body) as reply:
                await reply.read()
                return reply.status

        return await asyncio.gather(*(status() for _ in range(AT_ONCE)))


def test_many_rollouts_run_at_once(demo: httpx.Client, task_rows: Rows) -> None:
    demo.post("/_knobs", json={"latency_ms": 1000})
    body = orjson.dumps(keyed(task_rows[0], 77))
    started = time.monotonic()

    statuses = anyio.run(statuses_at_once, str(demo.base_url), body)

    state = demo.get("/_knobs").json()
    assert time.monotonic() - started < 10
    assert set(statuses) == {200}
    assert state["max_in_flight"] == AT_ONCE
    assert (state["in_flight"], state["by_key"]["77:0"]) == (0, AT_ONCE)
