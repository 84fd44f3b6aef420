"""Profile: a plan and its records become Gym's three profile files.

Rows are read one at a time and only their numbers kept; the representative row of a
task is read back from its place when its line is written.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tasks.adapters.jsonl import (
    located,
    open_to_read,
    parse_object,
    parse_record,
    read_lines,
    read_row,
    replace_bytes,
    replace_rows,
)
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.errors import DuplicateRolloutError
from tasks.core.models import RunSummary
from tasks.core.options import ProfileOptions
from tasks.core.profiling import Profile, profile_rewards
from tasks.core.records import (
    PlannedRow,
    Record,
    RolloutKey,
    collected_record,
    planned_row,
    rollout_key,
)
from tasks.core.summary import run_summary, summarize


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


def profile_output(
    files: RunFiles, options: ProfileOptions, *, allow_partial: bool = True
) -> RunSummary:
    """Profile an output's plan and records, and summarise them by agent.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    return profile_files(
        files.materialized_inputs, files.rollouts, options, allow_partial=allow_partial
    )


def profile_files(
    inputs: Path, rollouts: Path, options: ProfileOptions, *, allow_partial: bool
) -> RunSummary:
    """Profile records against a plan that may lie elsewhere."""
    written = write_profile(inputs, rollouts, allow_partial=allow_partial)
    files = written.files
    agents = summarize(
        written.rows,
        written.records,
        read_failures(files),
        pass_threshold=options.pass_threshold,
    )
    paths = [files.reward_profiling, files.agent_metrics, files.repeat_level_metrics]
    summary = run_summary(str(rollouts), agents, [str(path) for path in paths])
    strays = sum(record.failure_class is not None for record in written.records)
    if strays:
        warning = f"{strays} lines of {rollouts} are failures, not records"
        return summary.model_copy(update={"warnings": (warning,)})
    return summary


def read_failures(files: RunFiles) -> Counter[RolloutKey]:
    """Count the recorded failures of each rollout; none where there is no file.

    Raises:
        RecordError: a line carries no rollout key; names file and line.
    """
    failed: Counter[RolloutKey] = Counter()
    if files.failures.exists():
        for line in read_lines(files.failures):
            with located(files.failures, line.number):
                failed[rollout_key(parse_object(line.text))] += 1
    return failed


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
            record = collected_record(parse_record(line.text))
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
