"""Plans and rollouts to measure profiling with: made up, and the same every time.

    python benchmarks/profile_data.py FOLDER TASKS REPEATS KILOBYTES [--tools N]

A rollout has ten numeric columns, three of them usage, one of them missing in a tenth
of the rollouts; the rest is text that profiling has to get past. With tools, it is
their schemas, which a row and its reply both carry, and many short calls: equal bytes,
and twice the memory once they are Python's objects.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

WORDS = (
    "the reward of a rollout is what its verifier says, and a task that always passes"
    " teaches as little as one that never does; so count what is missing before you"
    ' average what is there. "Quoted", escaped\n and plain text alternate here. '
)
TURN_CHARACTERS, SHORT_TURN_CHARACTERS = 900, 150
ITEM_CHARACTERS = 290
"""What a turn takes beside its text."""
FORMAT_OK = 0.9
MISSING = 0.1


class Shape(NamedTuple):
    """What rollouts look like."""

    kilobytes: float
    """About so large is each."""
    characters: int = 2_200
    """Of what is asked."""
    tools: int = 0
    """That an agent may call, which it does in many short turns."""


def tool(number: int) -> dict[str, Any]:
    """Return the schema of a tool, about 480 characters of JSON."""
    kinds = ("string", "integer", "boolean")
    return {
        "type": "function", "name": f"tool_{number}", "strict": True,
        "description": WORDS[:120],
        "parameters": {
            "type": "object", "additionalProperties": False,
            "properties": {
                f"{kind}_{number}": {"type": kind, "description": WORDS[:12]}
                for kind in kinds
            },
            "required": [f"{kind}_{number}" for kind in kinds],
        },
    }  # fmt: skip


def plan_row(task: int, rollout: int, shape: Shape) -> dict[str, Any]:
    """Return a planned rollout."""
    text = (WORDS * 8)[: shape.characters]
    message = {"role": "user", "content": f"Question {task}: {text}"}
    params: dict[str, Any] = {"input": [message]}
    if shape.tools:
        params["tools"] = list(map(tool, range(shape.tools)))
    return {
        "responses_create_params": params,
        "expected_answer": str(task),
        "agent_ref": {"name": "bench_agent"},
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
    }


def output_items(
    rng: random.Random, characters: int, turn: int
) -> Iterator[dict[str, Any]]:
    """Yield a reply's turns: a call of a tool, what it said, and a message."""
    while characters > 0:
        size = min(characters, turn)
        start = rng.randrange(len(WORDS))
        text = (WORDS * (size // len(WORDS) + 2))[start : start + size]
        if characters > turn:
            call = f"call_{rng.randrange(10**9)}"
            yield {
                "type": "function_call", "call_id": call, "name": "search",
                "arguments": '{"query":"x"}', "id": "fc_" + call, "status": "completed",
            }  # fmt: skip
            yield {
                "type": "function_call_output", "call_id": call, "output": text,
            }  # fmt: skip
        else:
            part = {"type": "output_text", "text": text, "annotations": []}
            yield {
                "type": "message", "role": "assistant", "status": "completed",
                "id": f"msg_{rng.randrange(10**9)}", "content": [part],
            }  # fmt: skip
        characters -= size + ITEM_CHARACTERS


def rollout_row(task: int, rollout: int, shape: Shape) -> dict[str, Any]:
    """Return a collected rollout."""
    rng = random.Random(task * 1_000_003 + rollout)
    planned = plan_row(task, rollout, shape)
    schemas = planned["responses_create_params"].get("tools", [])
    turn = SHORT_TURN_CHARACTERS if shape.tools else TURN_CHARACTERS
    ability = (task * 7919 % 1000) / 1000
    passed = rng.random() < ability
    tokens = rng.randrange(100, 4_000)
    around = shape.characters + 1_300 + 2 * len(orjson.dumps(schemas))
    said = int(shape.kilobytes * 1000) - around
    return {
        "responses_create_params": planned["responses_create_params"],
        "response": {
            "id": f"resp_{rng.randrange(10**12)}",
            "created_at": 1_700_000_000 + rollout,
            "error": None, "incomplete_details": None, "model": "bench",
            "object": "response",
            "output": list(output_items(rng, said, turn)),
            "parallel_tool_calls": True, "temperature": 1.0, "tools": schemas,
            "usage": {
                "input_tokens": 600 + task % 50,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": tokens,
                "output_tokens_details": {"reasoning_tokens": tokens // 3},
                "total_tokens": 600 + task % 50 + tokens,
            },
        },
        "reward": 1.0 if passed else 0.0,
        "mask_sample": False,
        "failure_kind": None,
        "accuracy": 1.0 if passed else rng.random(),
        "format_ok": rng.random() < FORMAT_OK,
        "num_turns": rng.randrange(1, 30),
        "latency_ms": rng.random() * 20_000,
        "overlap": rng.random(),
        "judge_points": None if rng.random() < MISSING else rng.randrange(11),
        "extracted_answer": str(rng.randrange(100)),
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "agent_ref": planned["agent_ref"],
        "_ng_environment_server": "bench_environment",
        "_ng_result_type": "legacy_agent",
    }  # fmt: skip


def write(folder: Path, tasks: int, repeats: int, shape: Shape) -> Path:
    """Write a plan and its rollouts, in the order of a collection; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    rollouts = folder / "rollouts.jsonl"
    keys = [(task, rollout) for task in range(tasks) for rollout in range(repeats)]
    with (folder / "rollouts_materialized_inputs.jsonl").open("wb") as plan:
        for key in keys:
            row = plan_row(*key, shape)
            plan.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    random.Random(0).shuffle(keys)
    with rollouts.open("wb") as file:
        for key in keys:
            row = rollout_row(*key, shape)
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    return rollouts


def main() -> None:
    """Write what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", type=int)
    parser.add_argument("repeats", type=int)
    parser.add_argument("kilobytes", type=float)
    parser.add_argument("--tools", type=int, default=0)
    given = parser.parse_args()
    shape = Shape(given.kilobytes, tools=given.tools)
    print(write(given.folder, given.tasks, given.repeats, shape))


if __name__ == "__main__":
    main()
