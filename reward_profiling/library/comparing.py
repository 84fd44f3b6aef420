"""Compare: is a candidate better than a baseline, and could these runs tell."""

from pathlib import Path

from reward_profiling.choosing.comparing.comparison_file import (
    refuse_target,
    write_comparison,
)
from reward_profiling.choosing.comparison import CompareOptions, Comparison
from reward_profiling.choosing.comparison_run import compare_outputs
from reward_profiling.files.run_files import RunFiles


def compare(
    baseline: Path | str,
    candidate: Path | str,
    options: CompareOptions | None = None,
    *,
    json: Path | None = None,
) -> Comparison:
    """Compare two outputs on the tasks that both scored, paired by what their rows say.

    Args:
        baseline: The rollouts file to compare with; its plan lies beside it.
        candidate: The rollouts file that is judged; its plan lies beside it.
        options: What is compared, and what is too much worse.
        json: Write the whole comparison into this file.

    Raises:
        ConfigError: a file cannot be read, or the runs have no scored task in common.
        RecordError: a line cannot be read; names file and line.
    """
    if json is not None:
        refuse_target(json)
    runs = RunFiles(Path(baseline)), RunFiles(Path(candidate))
    found = compare_outputs(*runs, options or CompareOptions())
    if json is not None:
        write_comparison(json, found)
    return found
