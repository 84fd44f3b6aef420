"""What the head server tells: which servers there are, and where they listen.

All of them listen on one port, which is this process's only one.
"""

import os
import time

import orjson

from reward_profiling.demo.responses import Json
from reward_profiling.demo.verifying.verifiers import VERIFIERS
from reward_profiling.wire import AGENTS, ENVIRONMENT_SERVERS, RESOURCES_SERVERS

HOST = "127.0.0.1"


def environment_of_agent(agent: object) -> str | None:
    """Give the environment whose agent has this name."""
    return next((one for one in VERIFIERS if f"{one}_agent" == agent), None)


def merged_config(port: int, model: str = "") -> dict[str, Json | str]:
    """Give every instance by name, in the shape of Gym's merged configuration."""
    config: dict[str, Json | str] = {"policy_model_name": model}
    address: Json = {"entrypoint": "app.py", "host": HOST, "port": port}
    for name in VERIFIERS:
        resources = {"type": RESOURCES_SERVERS, "name": name}
        agent = {"type": AGENTS, "name": f"{name}_agent"}
        config |= {
            name: {RESOURCES_SERVERS: {name: address | {"domain": "knowledge"}}},
            f"{name}_agent": {
                AGENTS: {"scripted_agent": address | {"resources_server": resources}}
            },
            f"{name}_environment_server": {
                ENVIRONMENT_SERVERS: {"legacy_agent": address | {"agent_server": agent}}
            },
        }
    return config


def config_text(port: int, model: str) -> str:
    """Give the configuration as Gym's head sends it: YAML text, here JSON."""
    return orjson.dumps(merged_config(port, model)).decode()


def server_instances(port: int) -> list[Json]:
    """Give one entry per instance, as `gym env status` reads them."""
    started = time.time()
    return [
        {
            "config_path": instance,
            "dir_path": f"{server_type}/{name}",
            "entrypoint": "app.py",
            "host": HOST,
            "name": name,
            "pid": os.getpid(),
            "port": port,
            "process_name": instance,
            "server_type": server_type,
            "start_time": started,
            "status": None,
            "uptime_seconds": None,
            "url": f"http://{HOST}:{port}",
        }
        for instance, server_type, name in _instances(port)
    ]


def _instances(port: int) -> list[tuple[str, str, str]]:
    """Give instance name, server type and implementation of every server."""
    return [
        (instance, server_type, name)
        for instance, block in merged_config(port).items()
        if isinstance(block, dict)
        for server_type, implementations in block.items()
        for name in (implementations if isinstance(implementations, dict) else ())
    ]
