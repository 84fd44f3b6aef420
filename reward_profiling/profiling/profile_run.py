"""Profile: turns a plan and its records into Gym's three profile files, and a table.

Files that were already made from the same inputs are left alone.
"""

from typing import TYPE_CHECKING

from reward_profiling.files.run_files import RunFiles
from reward_profiling.files.source_marks import glimpses_of
from reward_profiling.profiling.gym.profile_files import profile_files_of, write_profile
from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.records.rollout_metrics_writer import (
    write_rollout_metrics,
)
from reward_profiling.profiling.run_reading import (
    ProfileRequest,
    read_run,
    without_cyclic_collection,
)
from reward_profiling.profiling.run_sources import RunSources, sources_of
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.profiling.summary.summaries import summarize_run

if TYPE_CHECKING:
    from reward_profiling.profiling.options import ProfileOptions


def profile_run(sources: RunSources, request: ProfileRequest) -> RunSummary:
    """Profile records against a plan, write the files, and return a summary.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    with without_cyclic_collection():
        run = read_run(sources, request)
        if request.rebuild or not is_profiled(run):
            write_rollout_metrics(run, write_profile(run))
        return summarize_run(run, request.pass_threshold)


def profile_output(files: RunFiles, options: "ProfileOptions") -> RunSummary:
    """Profile an output that was collected here, complete or not, with its replies.

    Raises:
        ConfigError: a file cannot be read.
        RecordError: the files contradict each other; nothing was written.
    """
    if files.materialized_inputs.exists() and not files.rollouts.exists():
        files.rollouts.touch()  # no shard had begun when the run was stopped
    request = ProfileRequest(
        pass_threshold=options.pass_threshold, allow_partial=True, replies=True
    )
    return profile_run(sources_of(files), request)


def is_profiled(run: MatchedRun) -> bool:
    """Say whether all that would be written is there, from the same files."""
    stored, files = run.found.stored, run.sources.files
    if stored is None or stored.head.inputs != run.inputs:
        return False
    folder = files.rollout_metrics.parent
    return stored.head.outputs == glimpses_of(folder, profile_files_of(files))
