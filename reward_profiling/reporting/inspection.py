"""Inspect: what an output holds. It reads as little as possible and writes nothing."""

from dataclasses import replace
from pathlib import Path

import msgspec

from reward_profiling import wire
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import open_to_read
from reward_profiling.files.run_files import (
    RunFiles,
    output_of,
    output_planned_by,
    plans_in,
    record_files,
)
from reward_profiling.files.source_marks import spelled
from reward_profiling.planning.on_disk.plan_file import plan_rows, task_label
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.profile_run import is_profiled
from reward_profiling.profiling.run_reading import (
    ProfileRequest,
    read_run,
    without_cyclic_collection,
)
from reward_profiling.profiling.run_sources import RunSources, refuse_several_plans
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.profiling.summary.summaries import summarize_run
from reward_profiling.reporting.overview import (
    TaskGlance,
    Tenth,
    extremes,
    glances,
    num_given_up,
    tenths,
)

_SHOWN_TASKS = 5
_CHUNK_BYTES = 1 << 18


class FileGlance(msgspec.Struct, frozen=True):
    """One file of an output."""

    name: str
    num_lines: int
    """Lines, a last one without a newline included."""
    num_bytes: int


class NamedTask(msgspec.Struct, frozen=True):
    """A task, and the beginning of what it asks."""

    task: TaskGlance
    label: str


class Overview(msgspec.Struct, frozen=True):
    """What an output holds."""

    output: str
    files: list[FileGlance]
    counts: RunSummary | None
    """None where there is no plan."""
    num_tasks: int = 0
    num_given_up: int = 0
    """Rollouts without a record that will not be tried again."""
    tenths: list[Tenth] = []
    """The tasks by mean reward."""
    most_solved: list[NamedTask] = []
    least_solved: list[NamedTask] = []
    is_outdated: bool = False
    """Whether records were written after the profile."""

    @property
    def num_owed(self) -> int:
        """Rollouts that still have to be collected."""
        if self.counts is None:
            return 0
        return self.counts.failed + self.counts.missing - self.num_given_up


def output_named(path: Path) -> RunFiles:
    """Return the output at a path: its rollouts file, or the folder that it lies in.

    Raises:
        ConfigError: a folder holds no output, or several.
    """
    if not path.is_dir():
        return RunFiles(path)
    refuse_several_plans(path)
    if not any(path.glob("*.jsonl")):
        raise ConfigError(
            f"{path} is a folder without an output; give a file, such as"
            f" {path / 'rollouts.jsonl'}"
        )
    plans = plans_in(path)
    return RunFiles(
        output_planned_by(plans[0]) if plans else output_of(record_files(path))
    )


def overview(files: RunFiles, *, pass_threshold: float = 1.0) -> Overview:
    """Look at an output; what its records say comes from its columns where it can.

    Raises:
        ConfigError: there is nothing at that path.
        RecordError: a line cannot be read; names file and line.
    """
    shown = [
        files.rollouts, *(part.rollouts for part in files.shards()),
        files.materialized_inputs, files.failures, files.damaged, files.timings,
        files.aggregate_metrics, files.reward_profiling, files.agent_metrics,
        files.repeat_level_metrics, files.rollout_metrics, files.insights, files.report,
        files.run,
    ]  # fmt: skip
    present = [path for path in shown if path.exists()]
    if not present:
        raise ConfigError(f"No output at {files.rollouts}; run `materialize` first.")
    listed = [_glance(path) for path in present]
    if not files.materialized_inputs.exists():
        return Overview(spelled(files.rollouts), listed, None)
    parts = [files.rollouts, *(part.rollouts for part in files.shards())]
    existing = tuple(path for path in parts if path.exists())
    sources = RunSources(files.materialized_inputs, existing, files)
    with without_cyclic_collection():
        run = read_run(sources, ProfileRequest(allow_partial=True))
    return _overview(run, listed, pass_threshold)


def _overview(
    run: MatchedRun, listed: list[FileGlance], pass_threshold: float
) -> Overview:
    files, table = run.sources.files, run.table
    # `inspect` writes nothing, so the note that the columns were rebuilt is dropped.
    quiet = msgspec.structs.replace(run, found=run.found._replace(note=None))
    counts = summarize_run(quiet, pass_threshold)
    tasks = glances(table, pass_threshold)
    most, least = extremes(tasks, _SHOWN_TASKS)
    return Overview(
        output=spelled(files.rollouts),
        files=listed,
        counts=replace(
            counts,
            output=spelled(counts.output),
            warnings=tuple(map(spelled, counts.warnings)),
            files=(),
        ),
        num_tasks=len(table.tasks),
        num_given_up=num_given_up(table, run.failures),
        tenths=tenths([task.mean_reward for task in tasks]),
        most_solved=_named(run, most),
        least_solved=_named(run, least),
        is_outdated=_is_outdated(run),
    )


def _named(run: MatchedRun, tasks: list[TaskGlance]) -> list[NamedTask]:
    order = run.matching.plan_order
    with plan_rows(run.sources.inputs) as row_at:
        rows = [row_at(run.plan.place[order[task.first_row]]) for task in tasks]
    labels = [task_label(row.get(wire.PARAMS)) or "" for row in rows]
    return list(map(NamedTask, tasks, labels))


def _is_outdated(run: MatchedRun) -> bool:
    files = run.sources.files
    profile, rollouts = files.reward_profiling, files.rollouts
    if not profile.exists() or not rollouts.exists():
        return False
    if is_profiled(run):  # a copy or a touch makes the time newer, not the content
        return False
    return rollouts.stat().st_mtime > profile.stat().st_mtime


def _glance(path: Path) -> FileGlance:
    """Look at a file: count its newlines, without parsing its lines."""
    count = size = 0
    last = b"\n"
    with open_to_read(path) as file:
        if path.suffix != ".parquet":
            while chunk := file.read(_CHUNK_BYTES):
                count += chunk.count(b"\n")
                last = chunk[-1:]
        size = path.stat().st_size
    return FileGlance(spelled(path.name), count + (last != b"\n"), size)
