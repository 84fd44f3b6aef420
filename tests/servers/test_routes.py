from typing import Any

import pytest

from reward_profiling.errors import DatasetError, ServersNotReadyError
from reward_profiling.servers.routes import Route, Servers


def block(server_type: str, implementation: str, **fields: object) -> dict[str, Any]:
    address = {"host": "10.0.0.1", "port": 12000}
    return {server_type: {implementation: address | fields}}


def agent(**fields: object) -> dict[str, Any]:
    return block("responses_api_agents", "simple_agent", **fields)


def fronting(name: str, **fields: object) -> dict[str, Any]:
    reference = {"type": "responses_api_agents", "name": name}
    return block("environment_servers", "legacy_agent", agent_server=reference | fields)


def resources(name: str) -> dict[str, str]:
    return {"type": "resources_servers", "name": name}


def faults_of(config: dict[str, Any], *agents: str) -> tuple[str, ...]:
    with pytest.raises(DatasetError) as caught:
        Servers(config).routes(agents)
    return caught.value.faults


def source_faults(config: dict[str, Any], *sources: str) -> tuple[str, ...]:
    with pytest.raises(DatasetError) as caught:
        Servers(config).agents_of(sources)
    return caught.value.faults


def test_an_agent_is_reached_by_its_front() -> None:
    servers = Servers({"math": agent(port=1), "env": fronting("math")})

    assert servers.routes(["math", "math"]) == {
        "math": Route("http://10.0.0.1:12000", "env", "legacy_agent")
    }
    assert servers.agents == ["math"]
    assert servers.environment_servers == ["env"]


def test_older_servers_are_asked_directly() -> None:
    servers = Servers({"math": agent(host=None, port="11005")})

    route = servers.routes(["math"])["math"]

    assert route == Route("http://127.0.0.1:11005", None, None)


def test_an_untyped_reference_is_an_agents() -> None:
    server = block(
        "environment_servers", "e", agent_server={"name": "a"}, other={"name": "b"}
    )
    config = {"a": agent(), "b": agent(), "env": server}

    assert Servers(config).routes(["a"])["a"].server == "env"
    assert faults_of(config, "b") == (
        "agent 'b' must be fronted by exactly one environment server; found none",
    )


def test_a_server_fronts_all_its_agents() -> None:
    judge = {"type": "responses_api_agents", "name": "judge"}
    server = block(
        "environment_servers", "duel", agent_server={"name": "player"}, judge=judge
    )
    servers = Servers({"player": agent(), "judge": agent(), "env": server})

    assert set(servers.routes(["player", "judge"])) == {"player", "judge"}


def test_all_faults_are_in_one_message() -> None:
    config = {
        "math": agent(), "code": agent(), "free": agent(),
        "env_1": fronting("code"), "env_2": fronting("code"), "env_3": fronting("math"),
    }  # fmt: skip

    with pytest.raises(DatasetError) as caught:
        Servers(config).routes(["mth", "code", "free", "math", "poetry"])

    must = "must be fronted by exactly one environment server"
    assert str(caught.value).splitlines() == [
        "the running servers cannot run this plan:",
        f"  agent 'code' {must}; found env_1, env_2",
        f"  agent 'free' {must}; found none",
        "  agent 'mth' is unknown; did you mean 'math'?",
        "  agent 'poetry' is unknown; the servers have code, free, math",
    ]


@pytest.mark.parametrize("port", [None, "${port}", "eleven", ""])
def test_a_server_needs_a_usable_port(port: object) -> None:
    server = fronting("math")
    server["environment_servers"]["legacy_agent"]["port"] = port

    (fault,) = faults_of({"math": agent(), "env": server}, "math")

    assert fault.startswith("server 'env' has no usable address: host '10.0.0.1'")


def test_an_unresolved_host_is_a_fault() -> None:
    (fault,) = faults_of({"math": agent(host="${default_host}")}, "math")

    assert fault == (
        "server 'math' has no usable address: host '${default_host}', port 12000"
    )


def test_an_ipv6_host_is_put_into_brackets() -> None:
    servers = Servers({"math": agent(host="::1")})

    assert servers.routes(["math"])["math"].url == "http://[::1]:12000"


def test_a_server_is_found_by_name() -> None:
    servers = Servers({"math": agent(), "env": fronting("math")})

    assert servers.environment("env") == servers.routes(["math"])["math"]
    assert servers.environment("math") is None


def test_what_is_no_server_is_passed_over() -> None:
    config: dict[str, Any] = {
        "policy_api_key": "secret",
        "nothing": None,
        "empty": {"environment_servers": {}},
        "odd": {"environment_servers": ["x"]},
        "bare": {"environment_servers": {"e": 1}},
        "math": agent(),
    }

    servers = Servers(config)

    assert (servers.agents, servers.environment_servers) == (["math"], ["bare"])


def test_a_configuration_must_have_agents() -> None:
    with pytest.raises(ServersNotReadyError, match="has no agent"):
        Servers({"policy_model": {"responses_api_models": {"m": {}}}})


def test_a_task_source_leads_to_one_agent() -> None:
    config = {
        "math_agent": agent(resources_server=resources("math")),
        "math": block("resources_servers", "math"),
    }

    found = Servers(config).agents_of(["math", "math_agent"])

    assert found == {"math": "math_agent", "math_agent": "math_agent"}


def test_a_dataset_pins_its_servers_agent() -> None:
    datasets = [{"agent": "second"}, {"agent": "second"}, {"name": "unpinned"}, None]
    config = {
        "first": agent(resources_server=resources("math")),
        "second": agent(resources_server=resources("math")),
        "math": block("resources_servers", "math", datasets=datasets),
    }

    assert Servers(config).agents_of(["math"]) == {"math": "second"}


def test_ambiguous_task_sources_are_named() -> None:
    pins = [{"agent": "x"}, {"agent": "y"}]
    config = {
        "x": agent(resources_server=resources("both")),
        "y": agent(resources_server=resources("both")),
        "both": block("resources_servers", "r"),
        "alone": block("resources_servers", "r"),
        "torn": block("resources_servers", "r", datasets=pins),
    }

    assert source_faults(config, "both", "alone", "torn", "boht") == (
        "task source 'alone' needs exactly one agent; found none",
        "task source 'boht' is unknown; did you mean 'both'?",
        "task source 'both' needs exactly one agent; found x, y",
        "task source 'torn' needs exactly one agent; found x, y",
    )


def pairing(allowed: object) -> Servers:
    bound = {"type": "resources_servers", "name": "rs"}
    return Servers({
        "solver": {"responses_api_agents": {"simple": {"resources_server": bound}}},
        "rs": {"resources_servers": {"impl": {"allowed_agents": allowed}}},
    })  # fmt: skip


@pytest.mark.parametrize("allowed", [None, [], ["simple"], "simple", ["x", "simple"]])
def test_an_accepting_verifier_is_no_fault(allowed: object) -> None:
    pairing(allowed).refuse_pairings([("solver", None), ("solver", "rs")])


@pytest.mark.parametrize("allowed", [["other"], "other"])
@pytest.mark.parametrize("source", [None, "rs"])
def test_a_refusing_verifier_is_named(allowed: object, source: str | None) -> None:
    with pytest.raises(DatasetError, match="'rs' accepts only other") as refused:
        pairing(allowed).refuse_pairings([("solver", source)])

    assert len(refused.value.faults) == 1
    assert "--allow-unsupported-pairing" in str(refused.value)


def test_the_configuration_may_allow_any_pairing() -> None:
    bound = {"type": "resources_servers", "name": "rs"}
    servers = Servers({
        "allow_unsupported_pairing": True,
        "solver": {"responses_api_agents": {"simple": {"resources_server": bound}}},
        "rs": {"resources_servers": {"impl": {"allowed_agents": ["other"]}}},
    })  # fmt: skip

    servers.refuse_pairings([("solver", "rs")])


def environment(**fields: object) -> dict[str, Any]:
    return block("environment_servers", "duel", **fields)


def reference(name: str) -> dict[str, str]:
    return {"type": "responses_api_agents", "name": name}


def test_a_server_without_agents_is_reached() -> None:
    servers = Servers({"alone": environment()})

    assert servers.routes([], [("alone", None), ("alone", "anyone")]) == {
        "alone": Route("http://10.0.0.1:12000", "alone", "duel")
    }


def test_unknown_servers_and_agents_are_named() -> None:
    config = {"math": agent(), "env": fronting("math"), "duel": environment(port=None)}
    stamped = [("envv", None), ("envv", "math"), ("env", "code"), ("env", "math"),
               ("duel", None)]  # fmt: skip

    with pytest.raises(DatasetError) as caught:
        Servers(config).routes(["mth"], stamped)

    assert caught.value.faults == (
        "agent 'mth' is unknown; did you mean 'math'?",
        "server 'duel' has no usable address: host '10.0.0.1', port None",
        "environment server 'env' does not front agent 'code', but math",
        "environment server 'envv' is unknown; did you mean 'env'?",
    )


def test_without_servers_none_is_known() -> None:
    with pytest.raises(DatasetError, match="'e' is unknown; the servers have none"):
        Servers({"math": agent()}).routes([], [("e", None)])


@pytest.mark.parametrize(
    ("server", "attributed"),
    [
        (environment(agent_server=reference("x")), "x"),
        (environment(agent_server={"name": "x"}), "x"),
        (environment(agent_server=reference("x"), judge=reference("y")), "x"),
        (environment(judge=reference("y")), "y"),
        (environment(player=reference("x"), judge=reference("y")), None),
        (environment(), None),
        (environment(agent_server="x"), None),
    ],
)
def test_server_records_are_attributed_to(
    server: dict[str, Any], attributed: str | None
) -> None:
    found = Servers({"env": server, "other": server}).attributed_agents(["env", "no"])

    assert found == ({} if attributed is None else {"env": attributed})


def test_pairings_without_agents_are_no_fault() -> None:
    pairing(["other"]).refuse_pairings([("nobody", "rs")])
