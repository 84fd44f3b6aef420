"""Profile: a plan and its records become Gym's three profile files, and a table.

The representative row of a task is read back from its place when its line is written.
What is there already, made from the very same files, is left as it is.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import line_at, replace_bytes, replace_rows
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import Glimpse, stamp, stamps_of
from reward_profiling.planning.on_disk.plan_file import RowAt, plan_rows
from reward_profiling.profiling.agent_summaries import run_counts, summarize
from reward_profiling.profiling.gym_profile import Profile, profile_matched
from reward_profiling.profiling.matching import Matching
from reward_profiling.profiling.records.record_columns import NotFinite, RecordColumns
from reward_profiling.profiling.records.rollout_metrics import (
    RunRows,
    Stamps,
    write_rollout_metrics,
)
from reward_profiling.profiling.records.stored_records import marks_of
from reward_profiling.profiling.run_reading import (
    SHOWN_LINES,
    ProfileRequest,
    Reading,
    Sources,
    place_of,
    read_run,
    sources_of,
    without_cyclic_collection,
)
from reward_profiling.profiling.run_summary import RunSummary
from reward_profiling.profiling.tabulation import unscored_reasons

if TYPE_CHECKING:
    from reward_profiling.profiling.options import ProfileOptions


def write_profile(sources: Sources, reading: Reading) -> Stamps:
    """Write the three files; return what they were when they had been written.

    Raises:
        RecordError: a value is nested too deep to be written.
    """
    files = sources.files
    profile = profile_matched(reading.plan, reading.records, reading.matching)
    try:
        written = [
            replace_rows(files.reward_profiling, _task_lines(profile, sources.inputs)),
            replace_bytes(files.agent_metrics, orjson.dumps(profile.agents)),
            replace_bytes(files.repeat_level_metrics, orjson.dumps(profile.repeats)),
        ]
    except orjson.JSONEncodeError:
        _refuse_deep_reward(sources, reading.records)
        raise
    folder = files.rollout_metrics.parent
    # Of what was written here: another profile of this output may have come since.
    return [
        stamp(folder, path, Glimpse.of(found))
        for path, found in zip(profile_files_of(files), written, strict=True)
    ]


def _refuse_deep_reward(sources: Sources, records: RecordColumns) -> None:
    for row, reward in records.raw_rewards.items():
        try:
            orjson.dumps(None if isinstance(reward, NotFinite) else reward)
        except orjson.JSONEncodeError as error:
            raise RecordError(
                f"{place_of(sources, records, row)}: the reward is nested too deep to"
                " be written again"
            ) from error


def write_columns(sources: Sources, reading: Reading, outputs: Stamps) -> None:
    """Write the run's columns, beside the files of the profile, given their stamps."""
    path = sources.files.rollout_metrics
    rows = RunRows(
        reading.plan,
        reading.records,
        reading.matching,
        reading.table,
        reading.copies,
    )
    marks = marks_of(path, sources.rollouts, reading.found)
    write_rollout_metrics(path, rows, marks, reading.stamps, outputs)


def profile_files_of(files: RunFiles) -> list[Path]:
    """Return Gym's three files of an output."""
    return [files.reward_profiling, files.agent_metrics, files.repeat_level_metrics]


def is_written(files: RunFiles, reading: Reading) -> bool:
    """Say whether all that would be written is there, from the same files."""
    stored = reading.found.stored
    if stored is None or stored.stamps != reading.stamps:
        return False
    folder = files.rollout_metrics.parent
    return stored.outputs == stamps_of(folder, profile_files_of(files))


def profile_run(sources: Sources, request: ProfileRequest) -> RunSummary:
    """Profile records against a plan, write Gym's files, and count what there is.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    with without_cyclic_collection():
        reading = read_run(sources, request)
        if request.rebuild or not is_written(sources.files, reading):
            write_columns(sources, reading, write_profile(sources, reading))
        return counted(sources, reading, request.pass_threshold)


def counted(sources: Sources, reading: Reading, pass_threshold: float) -> RunSummary:
    """Count what there is of a run, and name what a person should look at."""
    files, records = sources.files, reading.records
    reasons = unscored_reasons(records)
    rows = _table_rows(reading.matching)
    agents = summarize(
        reading.table,
        {rows[row]: reason for row, reason in reasons.items()},
        pass_threshold=pass_threshold,
    )
    paths = [*profile_files_of(files), files.rollout_metrics]
    warnings = [*_unscored_lines(sources, records, reasons)]
    if reading.copies.number:
        places = [f"{sources.rollouts[f]}:{line}" for f, line in reading.copies.places]
        warnings.append(
            f"{reading.copies.number} records of rollouts that have an earlier one were"
            f" left out: {_listed(places, reading.copies.number)}"
        )
    if reading.found.note:
        warnings.append(reading.found.note)
    for path, end in zip(sources.rollouts, reading.found.ends, strict=True):
        if end.is_torn:
            warnings.append(
                f"{path}:{end.line + 1}: the last line was left out; it is being"
                " written, or its writer died"
            )
    if records.strays:
        warnings.append(
            f"{len(records.strays)} lines of {sources.rollouts[0]} are failures, not"
            " records"
        )
    return run_counts(
        str(files.rollouts), agents, [str(path) for path in paths], warnings
    )


def _table_rows(matching: Matching) -> "range | list[int]":
    """Return the table's row of each record."""
    every = range(len(matching.has_record))
    if 0 not in matching.has_record:
        return every
    return [row for row in every if matching.has_record[row]]


def _unscored_lines(
    sources: Sources, records: RecordColumns, reasons: Mapping[int, str]
) -> Iterator[str]:
    """Name the records without a score: how many, why, and where the first ones are."""
    for reason, count in sorted(Counter(reasons.values()).items()):
        rows = (row for row, found in reasons.items() if found == reason)
        places = ((records.file[row], records.line[row]) for row in rows)
        first = heapq.nsmallest(SHOWN_LINES, places)
        named = [f"{sources.rollouts[file]}:{line}" for file, line in first]
        yield f"reward {reason}: {count} not scored: {_listed(named, count)}"


def _listed(places: list[str], count: int) -> str:
    more = count - len(places)
    return ", ".join(places) + (f" and {more} more" if more else "")


def _task_lines(profile: Profile, inputs: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the reward profile, each with its representative row."""
    with plan_rows(inputs) as row_at:
        for task in profile.tasks:
            sample = _sample(row_at, inputs, task.sample_place)
            yield {**task.head, "sample": sample, **task.tail}


def _sample(row_at: RowAt, inputs: Path, place: int) -> orjson.Fragment:
    """Return the plan's row at a place as JSON, without its indices."""
    sample = row_at(place)
    del sample[wire.TASK_INDEX], sample[wire.ROLLOUT_INDEX]
    try:
        return orjson.Fragment(orjson.dumps(sample))
    except orjson.JSONEncodeError as error:
        raise RecordError(
            f"{inputs}:{line_at(inputs, place)}: is nested too deep to be written again"
        ) from error


# For steps and commands that hand on models.


def profile_output(
    files: RunFiles, options: "ProfileOptions", *, allow_partial: bool = True
) -> "RunSummary":
    """Profile an output's plan and records, and summarise them by agent.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    request = ProfileRequest(
        pass_threshold=options.pass_threshold, allow_partial=allow_partial, replies=True
    )
    if files.materialized_inputs.exists() and not files.rollouts.exists():
        files.rollouts.touch()  # no shard had begun when the run was stopped
    return profile_sources(sources_of(files), request)


def profile_files(
    inputs: Path, rollouts: Path, options: "ProfileOptions", *, allow_partial: bool
) -> "RunSummary":
    """Profile records against a plan that may lie elsewhere."""
    request = ProfileRequest(
        pass_threshold=options.pass_threshold, allow_partial=allow_partial
    )
    sources = Sources(inputs, (rollouts,), RunFiles(rollouts))
    return profile_sources(sources, request)


def profile_sources(sources: Sources, request: ProfileRequest) -> "RunSummary":
    """Profile a run."""
    return profile_run(sources, request)
