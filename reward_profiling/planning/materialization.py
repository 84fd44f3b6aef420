"""Materialize: turns a checked input into the plan, one line per rollout.

The plan and its manifest are written completely or not at all. An earlier plan can only
grow: its rollouts keep their keys and their bytes.
"""

from collections.abc import Iterator

from reward_profiling.errors import PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import CheckedInput
from reward_profiling.planning.earlier_plan import (
    EarlierPlan,
    Growth,
    is_collected,
    read_earlier_plan,
)
from reward_profiling.planning.on_disk.orphaned_records import disagreement
from reward_profiling.planning.on_disk.plan_file import replace_plan
from reward_profiling.planning.on_disk.run_manifest import (
    PlanOrigin,
    input_digest,
    replace_manifest,
    set_aside_damaged,
)
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
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    mended = set_aside_damaged(files)
    refuse_other_output(files)
    earlier = read_earlier_plan(files)
    agents = late_agents(checked, resolve, attribute)
    lines = PlanLines(checked, agents, earlier, is_collected=is_collected(files))
    growth = Growth(earlier)
    if earlier.is_lost or earlier.num_damaged:
        _refuse_another_plan(files, lines, checked, earlier)
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
        warnings=(
            *checked.plan.warnings,
            *mended,
            *_rebuilt(files, earlier),
            *_unsent(checked, agents),
        ),
        manifest=str(files.run),
    )


def _unsent(checked: CheckedInput, agents: dict[int, str]) -> Iterator[str]:
    """Say how many rows nobody has named an agent for: they cannot be collected."""
    count = sum(
        task.lacks_agent and task.server is None and task.place not in agents
        for task in checked.plan.tasks
    )
    if count:
        rows = "1 row names" if count == 1 else f"{count} rows name"
        yield (
            f"{rows} a task source and no agent, so `collect` cannot send them: use"
            " `run`, which asks the servers, or name their agents with --agent-map"
        )


def _rebuilt(files: RunFiles, earlier: EarlierPlan) -> Iterator[str]:
    """Say what of the plan was lost and is there again."""
    if earlier.is_lost:
        yield f"{files.materialized_inputs} was missing and is written again"
    if earlier.num_damaged:
        one = earlier.num_damaged == 1
        lines = (
            "1 damaged line is" if one else f"{earlier.num_damaged} damaged lines are"
        )
        yield f"{files.materialized_inputs}: {lines} written again"


def _refuse_another_plan(
    files: RunFiles, lines: PlanLines, checked: CheckedInput, earlier: EarlierPlan
) -> None:
    """Refuse a plan in place of a lost one that the records do not show to be theirs.

    Raises:
        PlanChangedError: says which record disagrees.
    """
    # Lines that can be read are compared one by one, as those of any plan.
    is_same_input = not earlier.is_lost or input_digest(files) == checked.digest
    why = disagreement(files, lines, is_same_input=is_same_input)
    if why is not None:
        state = "is missing" if earlier.is_lost else "is damaged"
        raise PlanChangedError(
            f"{files.rollouts} already holds rollouts, but its plan"
            f" {files.materialized_inputs.name} {state}, and the one that this input"
            f" gives is not theirs: {why}. Nothing was changed: give the input and the"
            " options of those rollouts, put the plan back, or give another --output"
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
