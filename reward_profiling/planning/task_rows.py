"""One task row: its checks, and the planned row that it becomes.

Source: `gym-contract.md` §1.1 and §2.2, steps 2 and 3.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.planning.additions.prompt_template import PromptTemplate
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import PlannedTask
from reward_profiling.planning.routing import mapped_agent
from reward_profiling.planning.row_members import agent_name, taskset_of
from reward_profiling.values import JsonObject


@dataclass(frozen=True, slots=True)
class Additions:
    """What a plan adds to rows from files of its own, already read."""

    prompt: PromptTemplate | None = None
    """Makes each row's input; None where the rows bring theirs."""
    skills: JsonObject | None = None
    """The `skills_ref` that rows are stamped with."""


NO_ADDITIONS = Additions()


def check_row(
    row: Mapping[str, Any], options: PlanOptions, additions: Additions = NO_ADDITIONS
) -> None:
    """Refuse a task row that cannot be planned.

    Raises:
        RecordError: what is missing, and the remedy.
    """
    if taskset_of(row) is not None:
        _check_materialized(options, additions)
        return
    params = _own_params(row, additions)
    if options.num_repeats_add_seed:
        seeded_metadata({**params, **options.responses_create_params}, 0)


def _check_materialized(options: PlanOptions, additions: Additions) -> None:
    """Refuse options that cannot change a task that is already materialized."""
    given = (
        ("--prompt-config", additions.prompt),
        ("--responses-create-params", options.responses_create_params),
        ("--skills", additions.skills),
        ("--num-repeats-add-seed", options.num_repeats_add_seed),
    )
    for flag, value in given:
        if value:
            raise RecordError(
                f"is a materialized task row, so {flag} cannot change it; put the value"
                " into the row's task_input"
            )


def _own_params(row: Mapping[str, Any], additions: Additions) -> dict[str, Any]:
    """Return the row's params, with the input that a prompt template makes."""
    params = row.get(wire.PARAMS)
    if additions.prompt is None:
        if wire.PARAMS not in row:
            raise RecordError(
                f"has no {wire.PARAMS}; give each row one with its input, such as"
                f' {{"{wire.PARAMS}": {{"input": "…"}}}}, or use --prompt-config'
            )
    elif not params:
        params = {}
    if not isinstance(params, Mapping):
        raise RecordError(f"{wire.PARAMS} is not an object")
    if additions.prompt is None:
        return dict(params)
    if params.get(wire.INPUT):
        raise RecordError(
            f"has its own {wire.PARAMS}.{wire.INPUT}, which --prompt-config would"
            " replace; leave one of them out"
        )
    return {**params, wire.INPUT: additions.prompt.messages(row)}


def seeded_metadata(params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return `params.metadata` with `seed` set inside its `extra_body` text.

    `extra_body` is JSON as text, which Gym hands on to the model's server.

    Raises:
        RecordError: `metadata` is no object, or `extra_body` no JSON object as text.
    """
    metadata = params.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise RecordError(f"{wire.PARAMS}.metadata is not an object")
    text = metadata.get("extra_body", "{}")
    try:
        extra = json.loads(text)
    except (TypeError, ValueError) as error:
        raise RecordError("metadata.extra_body is not JSON as text") from error
    if not isinstance(extra, dict):
        raise RecordError("metadata.extra_body is not a JSON object")
    # Gym writes this text with Python's spacing, and the plan must equal Gym's bytes.
    return {**metadata, "extra_body": json.dumps({**extra, "seed": seed})}


def materialized_row(
    row: Mapping[str, Any],
    task: PlannedTask,
    rollout_index: int,
    options: PlanOptions,
    additions: Additions = NO_ADDITIONS,
) -> dict[str, Any]:
    """Return the row of one planned rollout, keys in Gym's order (§1.1).

    Raises:
        RecordError: the prompt or the seed does not fit the row; `check_row` tells it.
    """
    planned = dict(row)
    if not task.is_materialized:
        params = _own_params(row, additions) | options.responses_create_params
        if options.num_repeats_add_seed:
            params["metadata"] = seeded_metadata(params, rollout_index)
        planned[wire.PARAMS] = params
    if task.server is None:
        mapped = mapped_agent(agent_name(row), row.get(wire.TASK_SOURCE), options)
        if mapped is not None:
            planned[wire.AGENT_REF] = {"name": mapped}
    if additions.skills is not None:
        planned[wire.SKILLS_REF] = additions.skills
    planned[wire.TASK_INDEX] = task.task_index
    if task.server is not None:
        planned[wire.ENVIRONMENT_SERVER] = task.server
    if task.agent is not None and agent_name(planned) != task.agent:
        planned[wire.AGENT_REF] = {"name": task.agent}
    planned[wire.ROLLOUT_INDEX] = rollout_index
    return planned
