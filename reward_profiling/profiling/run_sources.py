"""The files that are profiled as one run, and where its own files lie."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import (
    RunFiles,
    output_of,
    plans_in,
    record_files,
)


class RunSources(msgspec.Struct, frozen=True):
    """The files that are profiled as one run, and where its own files lie."""

    inputs: Path
    """The plan."""
    rollouts: tuple[Path, ...]
    """Files of records; of two records of one rollout, the first one counts."""
    files: RunFiles
    """What is written lies beside this output."""

    def place(self, file: int, line: int) -> str:
        """Name a line of one of the files of records."""
        return f"{self.rollouts[file]}:{line}"


def sources_of(files: RunFiles) -> RunSources:
    """Return the sources of an output that lies in one place."""
    return RunSources(files.materialized_inputs, (files.rollouts,), files)


def sources_given(
    rollouts: Sequence[Path], *, inputs: Path | None, output: Path | None
) -> RunSources:
    """Return the sources that a command names; a folder stands for its files.

    Raises:
        ConfigError: a path is none of a file of records, or no plan is there, or a
            folder holds several outputs and no plan is named.
    """
    for given in rollouts:
        if inputs is None and output is None and given.is_dir():
            refuse_several_plans(given)
    found = [path for given in rollouts for path in record_files(given)]
    paths = list(dict.fromkeys(found))
    for path in paths:
        RunFiles(path)  # refuses the name of a plan, of failures and the like
    is_one_file = len(paths) == 1 and not rollouts[0].is_dir()
    whole = RunFiles(output_of(paths))
    files = RunFiles(output or paths[0]) if output or is_one_file else whole
    plan = files.materialized_inputs
    if not plan.exists():
        plan = whole.materialized_inputs
    return RunSources(inputs or plan, tuple(paths), files)


def refuse_several_plans(folder: Path) -> None:
    """Refuse a folder in which several outputs lie: they are not one run.

    Raises:
        ConfigError: names their plans.
    """
    plans = plans_in(folder)
    if len(plans) > 1:
        named = ", ".join(plan.name for plan in plans)
        raise ConfigError(
            f"{folder} holds several outputs; give the rollouts file of one of them."
            f" Their plans are {named}"
        )
