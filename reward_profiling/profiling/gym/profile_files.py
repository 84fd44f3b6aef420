"""Gym's three profile files, written.

The representative row of a task is read back from its place when its line is written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    line_at,
    replace_bytes,
    replace_rows,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import (
    Glimpse,
    Glimpses,
    name_from,
)
from reward_profiling.planning.on_disk.plan_file import RowAt, plan_rows
from reward_profiling.profiling.gym.gym_profile import Profile, profile_matched
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.records.record_columns import NotFinite


def write_profile(run: MatchedRun) -> Glimpses:
    """Write the three files; return what they were when they had been written.

    Raises:
        RecordError: a value is nested too deep to be written.
    """
    files, inputs = run.sources.files, run.sources.inputs
    profile = profile_matched(run.plan, run.records, run.matching)
    try:
        written = [
            replace_rows(files.reward_profiling, _task_lines(profile, inputs)),
            replace_bytes(files.agent_metrics, orjson.dumps(profile.agents)),
            replace_bytes(files.repeat_level_metrics, orjson.dumps(profile.repeats)),
        ]
    except orjson.JSONEncodeError:
        _refuse_deep_reward(run)
        raise
    folder = files.rollout_metrics.parent
    # Of what was written here: another profile of this output may have come since.
    return {
        name_from(folder, path): Glimpse.of(found)
        for path, found in zip(profile_files_of(files), written, strict=True)
    }


def _refuse_deep_reward(run: MatchedRun) -> None:
    for row, reward in run.records.raw_rewards.items():
        try:
            orjson.dumps(None if isinstance(reward, NotFinite) else reward)
        except orjson.JSONEncodeError as error:
            raise RecordError(
                f"{run.place_of(row)}: the reward is nested too deep to be written"
                " again"
            ) from error


def profile_files_of(files: RunFiles) -> list[Path]:
    """Return Gym's three files of an output."""
    return [files.reward_profiling, files.agent_metrics, files.repeat_level_metrics]


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
