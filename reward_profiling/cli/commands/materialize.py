"""`materialize`: turns task rows into a plan, without servers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.option_groups import PLAN, fields_of
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.library.planning import plan as write_plan
from reward_profiling.planning.options import PlanOptions
from reward_profiling.reporting.summary_words import planned

_PLAN = PlanOptions()
_OWN = Parameter(group=PLAN)


def materialize(
    *,
    input: Annotated[Path, _OWN],  # noqa: A002 - the flag's name
    output: Annotated[Path, _OWN],
    plan: Annotated[PlanOptions, fields_of(PLAN)] = _PLAN,
) -> int:
    """Write the plan of a task file: one line per rollout to collect.

    Args:
        input: Task rows, one JSON object per line.
        output: The rollouts file; the plan is written beside it and named after it.
        plan: How task rows become planned rollouts.
    """
    summary = write_plan(input, output, plan)
    for warning in summary.warnings:
        warn(warning)
    out.print(planned(summary))
    out.show(file_lines([summary.path]))
    return ExitCode.WHOLE
