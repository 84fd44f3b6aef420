"""Records whose plan is lost: whether a plan that is made again is theirs.

A plan decides what a key means, so another plan with the same keys would give records
to the wrong tasks. What records repeat of their rows tells: the agent, and the prompt.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import parse_record, read_lines
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.plan_file import task_label
from reward_profiling.planning.row_members import RolloutKey, agent_name, rollout_key


class _Trait(NamedTuple):
    """What a planned row and its record have in common."""

    agent: str | None
    prompt: str | None


def disagreement(
    files: RunFiles, lines: Iterable[tuple[RolloutKey, bytes]], *, is_same_input: bool
) -> str | None:
    """Say why the records of an output are not of a plan; None when they are.

    `lines` are those of the plan. Each record's key must be in it, and its agent and
    prompt, where it shows them, must be the plan's. At least one must show its prompt,
    unless the plan is known to be of the same input.

    Raises:
        ConfigError: a file of records cannot be read.
    """
    planned = {key: _trait(orjson.loads(text)) for key, text in lines}
    compared = 0
    for place, row in _recorded(files):
        key = rollout_key(row)
        trait = planned.get(key)
        if trait is None:
            return f"{place} is of task {key[0]} repeat {key[1]}, which is not in it"
        found = _trait(row)
        for name, ours, theirs in zip(trait._fields, trait, found, strict=True):
            if ours is not None and theirs is not None and ours != theirs:
                return f"{place} has the {name} {theirs!r}, and it has {ours!r} there"
        compared += found.prompt is not None
    if compared or is_same_input:
        return None
    return "no record shows its prompt, so nothing tells whether they are of it"


def _trait(row: Mapping[str, Any]) -> _Trait:
    try:
        agent = agent_name(row)
    except RecordError:
        agent = None
    return _Trait(agent, task_label(row.get(wire.PARAMS)))


def _recorded(files: RunFiles) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each record and failure with its place; damaged ones are owed anyway."""
    for part in (files, *files.shards()):
        for path in filter(Path.exists, (part.rollouts, part.failures)):
            for line in read_lines(path):
                try:
                    row = parse_record(line.text)
                    rollout_key(row)
                except RecordError:
                    continue
                yield f"{path}:{line.number}", row
