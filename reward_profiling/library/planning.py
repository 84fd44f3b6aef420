"""Plan: task rows become planned rollouts, without servers."""

from pathlib import Path

from reward_profiling.files.locking.output_lock import output_lock
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_summary import PlanSummary


def plan(
    input: Path | str,  # noqa: A002 - the command's name for it
    output: Path | str,
    options: PlanOptions | None = None,
) -> PlanSummary:
    """Write the plan of a task file: one line per rollout to collect.

    Args:
        input: Task rows, one JSON object a line.
        output: The rollouts file; the plan lies beside it and is named from it.
        options: How task rows become planned rollouts.

    Raises:
        ConfigError: the input cannot be read, or its rows cannot be planned.
        PlanChangedError: the output holds another plan; nothing was touched.
        OutputLockedError: another process writes the output.
    """
    files = RunFiles(Path(output))
    checked = check_input(Path(input), options or PlanOptions())
    with output_lock(files.lock):
        return materialize(checked, files)
