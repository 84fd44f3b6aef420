"""Profile: a plan and its records become Gym's three profile files.

Rows are read one at a time and only their numbers kept; the representative row of a
task is read back from its place when its line is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tasks.adapters.jsonl import (
    located,
    open_to_read,
    parse_object,
    read_lines,
    read_row,
    replace_bytes,
    replace_rows,
)
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.errors import DuplicateRolloutError
from tasks.core.profiling import Profile, profile_rewards
from tasks.core.records import PlannedRow, Record, collected_record, planned_row


@dataclass(frozen=True, slots=True)
class WrittenProfile:
    """A profile and the files that hold it."""

    profile: Profile
    rows: list[PlannedRow]
    records: list[Record]
    files: RunFiles


def write_profile(
    inputs: Path, rollouts: Path, *, allow_partial: bool
) -> WrittenProfile:
    """Profile records against a plan and write the three files beside the records.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    files = RunFiles(rollouts)
    rows = read_plan(inputs)
    records = read_records(rollouts)
    profile = profile_rewards(rows, records, allow_partial=allow_partial)
    replace_rows(files.reward_profiling, _task_lines(profile, inputs))
    replace_bytes(files.agent_metrics, orjson.dumps(profile.agents))
    replace_bytes(files.repeat_level_metrics, orjson.dumps(profile.repeats))
    return WrittenProfile(profile, rows, records, files)


def read_plan(path: Path) -> list[PlannedRow]:
    """Read the materialized inputs.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no planned row; names file and line.
        DuplicateRolloutError: two lines plan one rollout; names both.
    """
    rows = []
    lines: dict[Any, int] = {}
    for line in read_lines(path):
        with located(path, line.number):
            row = planned_row(parse_object(line.text), line.place)
            _refuse_second(row.key, line.number, lines)
        rows.append(row)
    return rows


def read_records(path: Path) -> list[Record]:
    """Read the collected records; the rest of each line is dropped at once.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: a line is no record; names file and line.
        DuplicateRolloutError: two lines hold one rollout; names both.
    """
    records = []
    lines: dict[Any, int] = {}
    for line in read_lines(path):
        with located(path, line.number):
            record = collected_record(parse_object(line.text))
            _refuse_second(record.key, line.number, lines)
        records.append(record)
    return records


def _refuse_second(key: Any, number: int, lines: dict[Any, int]) -> None:  # noqa: ANN401
    first = lines.setdefault(key, number)
    if first != number:
        raise DuplicateRolloutError(
            f"task {key[0]} repeat {key[1]} stands in line {first} already"
        )


def _task_lines(profile: Profile, inputs: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the reward profile, each with its representative row."""
    with open_to_read(inputs) as file:
        for task in profile.tasks:
            sample = read_row(file, task.sample_place)
            del sample[wire.TASK_INDEX], sample[wire.ROLLOUT_INDEX]
            yield {**task.head, "sample": sample, **task.tail}
