"""Materialize: turns a checked input into the plan, one line per rollout.

The plan and its manifest are written completely or not at all. An earlier plan can only
grow: its rollouts keep their keys and their bytes.
"""

from collections.abc import Iterator

from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.planning.earlier_plan import (
    Growth,
    is_collected,
    read_earlier_plan,
)
from reward_profiling.planning.on_disk.plan_file import replace_plan
from reward_profiling.planning.on_disk.run_manifest import PlanOrigin, replace_manifest
from reward_profiling.planning.plan_changes import plan_changed, refuse_other_output
from reward_profiling.planning.plan_lines import PlanLines, Resolve, late_agents
from reward_profiling.planning.plan_summary import PlanSummary


def materialize(
    checked: CheckedInput,
    files: RunFiles,
    resolve: Resolve | None = None,
    attribute: Resolve | None = None,
) -> PlanSummary:
    """Write the plan of a checked input beside the output, whole or not at all.

    Rows that name no agent get the one of their task source from `resolve`, or of their
    environment server from `attribute`, where the servers can be asked.

    Raises:
        ConfigError: the input cannot be read again, or the output's files are named
            like those of another one.
        PlanChangedError: the output holds another plan, or rollouts without a plan;
            nothing was touched.
        RecordError: a line of the earlier plan, or its manifest, is damaged.
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    refuse_other_output(files)
    earlier = read_earlier_plan(files)
    agents = late_agents(checked, resolve, attribute)
    lines = PlanLines(checked, agents, earlier, is_collected=is_collected(files))
    growth = Growth(earlier)
    replace_plan(files.materialized_inputs, _growing(files, growth, lines, checked))
    origin = PlanOrigin(
        checked.path,
        num_rows=checked.plan.num_rows,
        digest=checked.digest,
        settings=checked.settings,
        num_tasks=checked.plan.num_tasks,
        num_rollouts=growth.num_planned,
        is_adaptive=earlier.is_adaptive,
    )
    replace_manifest(files, origin)
    return PlanSummary(
        path=str(files.materialized_inputs),
        num_tasks=checked.plan.num_tasks,
        num_rollouts=growth.num_planned,
        num_new=growth.num_new,
        warnings=tuple(checked.plan.warnings),
        manifest=str(files.run),
    )


def _growing(
    files: RunFiles, growth: Growth, lines: PlanLines, checked: CheckedInput
) -> Iterator[bytes]:
    """Yield the lines; then refuse a changed plan that already has records.

    A plan without any record or failure may be replaced by any other.
    """
    for key, text in lines:
        growth.see(key, text)
        yield text
    if growth.is_change and lines.is_collected:
        raise plan_changed(files, growth, lines, checked.settings)


def refuse_change(checked: CheckedInput, files: RunFiles) -> None:
    """Refuse a plan that would change what was collected, before anything starts.

    A row whose agent only the servers can name is left to `materialize`.

    Raises:
        ConfigError: the input cannot be read again.
        PlanChangedError: the output holds another plan; nothing was touched.
        RecordError: a line of the earlier plan cannot be read; names file and line.
    """
    if not is_collected(files) or _needs_servers(checked):
        return
    growth, lines = _foreseen(checked, files)
    if growth.is_change:
        raise plan_changed(files, growth, lines, checked.settings)


def is_planned(checked: CheckedInput, files: RunFiles) -> bool:
    """Return whether the input would give the plan on disk.

    A row whose agent only the servers can name is not known without them.

    Raises:
        ConfigError: the input cannot be read again.
        PlanChangedError: there are rollouts without a plan.
        RecordError: a line of the earlier plan cannot be read; names file and line.
    """
    if _needs_servers(checked):
        return False
    growth, _ = _foreseen(checked, files)
    return not growth.is_change and not growth.num_new


def _needs_servers(checked: CheckedInput) -> bool:
    return any(task.lacks_agent for task in checked.plan.tasks)


def _foreseen(checked: CheckedInput, files: RunFiles) -> tuple[Growth, PlanLines]:
    """Compare the plan that the input would give with the one on disk."""
    growth = Growth(read_earlier_plan(files))
    lines = PlanLines(checked, {}, growth.earlier, is_collected=True)
    for key, text in lines:
        growth.see(key, text)
    return growth, lines
