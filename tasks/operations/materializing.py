"""Materialize: task rows become the plan, one line per rollout to collect.

The input is read twice: once to check every row, once to write. Only places and
counts are held between, so memory is set by the number of task rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import orjson

from tasks.adapters.jsonl import (
    Line,
    has_duplicate_keys,
    open_to_read,
    parse_object,
    read_lines,
    read_row,
    refuse_wide_integers,
    replace_bytes,
    replace_file,
)
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.errors import ConfigError, RecordError
from tasks.core.models import PlanOptions, PlanSummary
from tasks.core.planning import Plan, Planner, materialized_row
from tasks.core.records import RolloutKey, agent_name
from tasks.operations.earlier_plan import (
    EarlierPlan,
    Growth,
    is_collected,
    plan_changed,
    read_earlier_plan,
)

Resolve = Callable[[frozenset[str]], dict[str, str]]
"""From task sources to the agents that serve them."""

_MANIFEST_VERSION = 1
_SHOWN_LINES = 5


_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """An input whose every row can be planned."""

    path: Path
    options: PlanOptions
    plan: Plan
    digest: str
    """SHA-256 of the planned lines, line endings left out."""


def check_input(path: Path, options: PlanOptions) -> CheckedInput:
    """Read the task rows whole and plan them.

    Raises:
        ConfigError: the file cannot be read.
        DatasetError: rows that cannot be planned, all of them named.
    """
    planner = Planner(options)
    digest = sha256()
    repeated_names: list[int] = []
    cut_off: set[str] = set()
    for line in read_lines(path):
        if options.limit is not None and planner.num_rows >= options.limit:
            cut_off |= _agent_beyond_limit(line)
            continue
        digest.update(line.text + b"\n")
        if _take_row(planner, path, line):
            repeated_names.append(line.number)
    plan = planner.finish()
    plan.warnings += _input_warnings(path, repeated_names)
    plan.warnings += _limit_warnings(plan, cut_off, options)
    return CheckedInput(path, options, plan, digest.hexdigest())


def _take_row(planner: Planner, path: Path, line: Line) -> bool:
    """Plan one line; say whether it names a key twice."""
    try:
        row = parse_object(line.text)
        refuse_wide_integers(line.text)
    except RecordError as error:
        planner.reject(str(path), line.number, str(error))
        return False
    planner.add(row, line.text, str(path), line.number, line.place)
    return has_duplicate_keys(line.text, row)


def _agent_beyond_limit(line: Line) -> set[str]:
    try:
        row = parse_object(line.text)
        name = agent_name(row) or row.get(wire.TASK_SOURCE)
    except RecordError:
        return set()  # a row that is not planned need not be usable
    return {name} if isinstance(name, str) else set()


def _input_warnings(path: Path, repeated_names: list[int]) -> list[str]:
    warnings = []
    blank = _count_blank_lines(path)
    if blank:
        warnings.append(f"{path}: skipped {blank} blank lines")
    if repeated_names:
        lines = ", ".join(map(str, repeated_names[:_SHOWN_LINES]))
        warnings.append(
            f"{path}: {len(repeated_names)} rows name a key twice, and the last one"
            f" counts: lines {lines}{' …' * (len(repeated_names) > _SHOWN_LINES)}"
        )
    return warnings


def _count_blank_lines(path: Path) -> int:
    with open_to_read(path) as file:
        return sum(1 for raw in file if not raw.strip(b"\xef\xbb\xbf \t\r\n\v\f"))


def _limit_warnings(plan: Plan, cut_off: set[str], options: PlanOptions) -> list[str]:
    planned = {task.agent for task in plan.tasks}
    missing = sorted(cut_off - planned - set(options.routes()) - set(options.fan_out))
    if not missing or options.agent_name:
        return []
    return [f"limit {options.limit} leaves out every row of {', '.join(missing)}"]


def materialize(
    checked: CheckedInput, files: RunFiles, resolve: Resolve | None = None
) -> PlanSummary:
    """Write the plan of a checked input beside the output, whole or not at all.

    An earlier plan grows: what it planned keeps its key and its bytes.

    Raises:
        PlanChangedError: the output holds another plan, or rollouts without a plan;
            nothing was touched.
    """
    earlier = read_earlier_plan(files)
    lines = _PlanLines(checked, _agents_by_source(checked, resolve), earlier)
    growth = Growth(earlier)

    def write(file: IO[bytes]) -> None:
        for key, text in lines:
            growth.see(key, text)
            file.write(text + b"\n")
        if growth.is_change and is_collected(files):
            raise plan_changed(files, growth, lines, manifest(checked)["settings"])

    replace_file(files.materialized_inputs, write)
    replace_bytes(files.run, orjson.dumps(manifest(checked), option=_INDENT))
    return PlanSummary(
        path=str(files.materialized_inputs),
        num_tasks=checked.plan.num_tasks,
        num_rollouts=checked.plan.num_rollouts,
        num_new=growth.num_new,
        warnings=tuple(checked.plan.warnings),
    )


def is_planned(checked: CheckedInput, files: RunFiles) -> bool:
    """Say whether the plan on disk is the one that the input would give.

    A row that only names a task source is not known without the servers.
    """
    if any(task.agent is None for task in checked.plan.tasks):
        return False
    growth = Growth(read_earlier_plan(files))
    for key, text in _PlanLines(checked, {}, growth.earlier):
        growth.see(key, text)
    return not growth.is_change and not growth.num_new


class _PlanLines:
    """The lines of a plan in dispatch order; may be read more than once."""

    def __init__(
        self, checked: CheckedInput, agents: dict[int, str], earlier: EarlierPlan
    ) -> None:
        self._checked = checked
        self._agents = agents
        tasks = [
            replace(task, agent=task.agent or agents.get(task.place))
            for task in checked.plan.tasks
        ]
        plan = replace(checked.plan, tasks=tasks)
        self._plan = plan.keeping(earlier.indices) if earlier.indices else plan

    def __iter__(self) -> Iterator[tuple[RolloutKey, bytes]]:
        """Yield each planned rollout's key and its line, without the newline."""
        options = self._checked.options
        rollouts = self._plan.rollouts(interleave=options.interleave_repeats)
        place, row = -1, {}
        with open_to_read(self._checked.path) as file:
            for task, index in rollouts:
                if task.place != place:
                    place, row = task.place, read_row(file, task.place)
                late = self._agents.get(task.place)
                known = replace(task, agent=None) if late else task
                planned = materialized_row(row, known, index, options)
                if late:  # Gym appends an agent that only the servers could name
                    planned[wire.AGENT_REF] = {"name": late}
                yield (task.task_index, index), orjson.dumps(planned)


def _agents_by_source(checked: CheckedInput, resolve: Resolve | None) -> dict[int, str]:
    """Return the agent of each row that only names a task source, by its place."""
    places = [task.place for task in checked.plan.tasks if task.agent is None]
    if resolve is None or not places:
        return {}
    with open_to_read(checked.path) as file:
        sources = {p: str(read_row(file, p)[wire.TASK_SOURCE]) for p in places}
    agents = resolve(frozenset(sources.values()))
    return {place: agents[source] for place, source in sources.items()}


def manifest(checked: CheckedInput) -> dict[str, Any]:
    """Return what the plan was made from; the plan itself stays the truth."""
    return {
        "manifest_version": _MANIFEST_VERSION,
        "made_by": f"gym-reward-profiling {version('gym-reward-profiling')}",
        "input": {
            "path": str(checked.path),
            "num_rows": checked.plan.num_rows,
            "sha256": checked.digest,
        },
        "settings": checked.options.model_dump(mode="json"),
        "plan": {
            "num_tasks": checked.plan.num_tasks,
            "num_rollouts": checked.plan.num_rollouts,
        },
    }


def checked_output(path: Path) -> RunFiles:
    """Return the files of an output.

    Raises:
        ConfigError: the path cannot be an output.
    """
    if not path.name:
        raise ConfigError(f"{path} names no file")
    return RunFiles(path)
