"""Plans written from a few task rows, for tests."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_summary import PlanSummary

BOM = b"\xef\xbb\xbf"
A = b'{"responses_create_params":{"input":"a"},"agent_ref":{"name":"x"}}'
B = b'{"responses_create_params":{"input":"b"},"agent_ref":{"name":"x"}}'
C = b'{"responses_create_params":{"input":"c"},"agent_ref":{"name":"y"}}'


MADE = b'{"task_id":{"taskset":"ts","task_id":"%d"},"task_input":{}}'
ROUTES = {"environment_server_routes": {"ts": "ES"}}
ASKED = b'{"question":"hi"}'


def output(folder: Path) -> RunFiles:
    return RunFiles(folder / "out" / "rollouts.jsonl")


def planned(folder: Path, content: bytes, **options: Any) -> PlanSummary:  # noqa: ANN401
    path = folder / "in.jsonl"
    path.write_bytes(content)
    return materialize(check_input(path, PlanOptions(**options)), output(folder))


def collect_one(folder: Path) -> None:
    files = output(folder)
    key = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    files.rollouts.write_bytes(orjson.dumps({"reward": 1.0, **key}) + b"\n")


def plan_lines(folder: Path) -> list[bytes]:
    return output(folder).materialized_inputs.read_bytes().splitlines()


def digests(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths}


def prompt(folder: Path, content: str, name: str = "pc.yaml") -> str:
    (folder / name).write_text(content)
    return str(folder / name)
