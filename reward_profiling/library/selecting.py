"""Select: task rows are sorted into kept, rejected and undetermined."""

from dataclasses import replace
from pathlib import Path

from reward_profiling.choosing.selecting.targets import Targets
from reward_profiling.choosing.selection import SelectionSummary, SelectOptions
from reward_profiling.choosing.selection_run import select_rows
from reward_profiling.files.run_files import RunFiles


def select(  # noqa: PLR0913 - each is an option of the command
    input: Path | str,  # noqa: A002 - the command's name for it
    rollouts: Path | str,
    options: SelectOptions,
    *,
    inputs: Path | None = None,
    output: Path | None = None,
    dataset_folder: Path | None = None,
) -> SelectionSummary:
    """Sort task rows into kept, rejected and undetermined, by their pass rate.

    The three files add up to the input, each row in the bytes that it had.

    Args:
        input: The task rows that the rollouts were made from.
        rollouts: The collected records, Gym's or ours; their plan lies beside them.
        options: Which rows are kept, and how they are written.
        inputs: The plan, where it is not the one beside the rollouts.
        output: File of the kept rows, from which the other two are named.
        dataset_folder: Also write the kept rows as a folder for load_dataset.

    Raises:
        ConfigError: a file cannot be read or would be overwritten.
        DatasetError: rows and plan do not belong together.
        RecordError: a line cannot be read; names file and line.
    """
    files = RunFiles(Path(rollouts))
    targets = replace(Targets.beside(files, output), dataset_folder=dataset_folder)
    return select_rows(Path(input), files, targets, options, inputs=inputs)
