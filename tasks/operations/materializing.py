"""Materialize: task rows become the plan, one line per rollout to collect.

The input is read twice: once to check every row, once to write. Only places and
counts are held between, so memory is set by the number of task rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b, sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import orjson

from tasks.adapters.jsonl import (
    Line,
    has_duplicate_keys,
    located,
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
from tasks.core.changes import differences
from tasks.core.completeness import shown_keys
from tasks.core.errors import ConfigError, PlanChangedError, RecordError
from tasks.core.models import PlanOptions, PlanSummary
from tasks.core.planning import Plan, Planner, materialized_row
from tasks.core.records import RolloutKey, agent_name, rollout_key

Resolve = Callable[[frozenset[str]], dict[str, str]]
"""From task sources to the agents that serve them."""

_MANIFEST_VERSION = 1
_SHOWN_CHANGES = 10
_SHOWN_LINES = 5


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

    Raises:
        PlanChangedError: the output holds another plan, or rollouts without a plan;
            nothing was touched.
    """
    agents = _agents_by_source(checked.plan, checked, resolve)
    known = _planned_lines(files)
    _refuse_orphans(files)
    path = files.materialized_inputs
    state = _Growth(known)

    def write(file: IO[bytes]) -> None:
        for key, text in _plan_lines(checked, agents):
            state.see(key, text)
            file.write(text + b"\n")
        if state.changed and _is_collected(files):
            raise _plan_changed(checked, files, agents, state)

    replace_file(path, write)
    replace_bytes(files.run, orjson.dumps(_manifest(checked), option=_INDENT))
    return PlanSummary(
        path=str(path),
        num_tasks=checked.plan.num_tasks,
        num_rollouts=checked.plan.num_rollouts,
        num_new=state.num_new,
        warnings=tuple(checked.plan.warnings),
    )


_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def is_planned(checked: CheckedInput, files: RunFiles) -> bool:
    """Say whether the plan on disk is the one that the input would give.

    A row that only names a task source is not known without the servers.
    """
    if any(task.agent is None for task in checked.plan.tasks):
        return False
    growth = _Growth(_planned_lines(files))
    for key, text in _plan_lines(checked, {}):
        growth.see(key, text)
    return not growth.changed and not growth.num_new


def _agents_by_source(
    plan: Plan, checked: CheckedInput, resolve: Resolve | None
) -> dict[str, str]:
    """Return the agent of each task source, where servers are there to ask."""
    if resolve is None or all(task.agent for task in plan.tasks):
        return {}
    sources = set()
    with open_to_read(checked.path) as file:
        for task in plan.tasks:
            if task.agent is None:
                sources.add(str(read_row(file, task.place)[wire.TASK_SOURCE]))
    return resolve(frozenset(sources))


def _plan_lines(
    checked: CheckedInput, agents: dict[str, str]
) -> Iterator[tuple[RolloutKey, bytes]]:
    """Yield the plan's lines in dispatch order."""
    options = checked.options
    place, row = -1, {}
    with open_to_read(checked.path) as file:
        for task, index in checked.plan.rollouts(interleave=options.interleave_repeats):
            if task.place != place:
                place, row = task.place, read_row(file, task.place)
            planned = materialized_row(row, task, index, options)
            if task.agent is None and agents:
                planned[wire.AGENT_REF] = {"name": agents[row[wire.TASK_SOURCE]]}
            yield (task.task_index, index), orjson.dumps(planned)


class _Growth:
    """Compares a new plan with the lines already planned, line by line."""

    def __init__(self, known: dict[RolloutKey, bytes]) -> None:
        self._known = known
        self._kept = 0
        self.num_new = 0
        self.first_changed: RolloutKey | None = None

    def see(self, key: RolloutKey, text: bytes) -> None:
        old = self._known.get(key)
        if old is None:
            self.num_new += 1
            return
        self._kept += 1
        if old != _fingerprint(text) and self.first_changed is None:
            self.first_changed = key

    @property
    def num_lost(self) -> int:
        return len(self._known) - self._kept

    @property
    def changed(self) -> bool:
        return self.first_changed is not None or self.num_lost > 0


def _fingerprint(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()


def _planned_lines(files: RunFiles) -> dict[RolloutKey, bytes]:
    path = files.materialized_inputs
    if not path.exists():
        return {}
    known = {}
    for line in read_lines(path):
        with located(path, line.number):
            known[rollout_key(parse_object(line.text))] = _fingerprint(line.text)
    return known


def _is_collected(files: RunFiles) -> bool:
    """Say whether something was already paid for under this output."""
    paths = [files.rollouts, files.failures, *(s.rollouts for s in files.shards())]
    return any(path.exists() and path.stat().st_size for path in paths)


def _refuse_orphans(files: RunFiles) -> None:
    if not files.materialized_inputs.exists() and _is_collected(files):
        raise PlanChangedError(
            f"{files.rollouts} already holds rollouts, but its plan"
            f" {files.materialized_inputs.name} is not beside it. Nothing was touched:"
            " put the plan back to resume, or give another --output"
        )


def _plan_changed(
    checked: CheckedInput, files: RunFiles, agents: dict[str, str], state: _Growth
) -> PlanChangedError:
    changes = [*_changed_settings(checked, files)]
    if state.first_changed is not None:
        where = shown_keys([state.first_changed])
        old, new = _both_rows(checked, files, agents, state.first_changed)
        changes += [f"{change}  (first at {where})" for change in differences(old, new)]
    if state.num_lost:
        changes.append(f"{state.num_lost} planned rollouts would be dropped")
    listed = "\n".join(f"  {change}" for change in changes[:_SHOWN_CHANGES])
    return PlanChangedError(
        f"{files.rollouts} holds rollouts of another plan; nothing was touched."
        f"\n{listed}\nUse the old settings to resume (more repeats or appended rows are"
        " welcome), or give another --output for a new run."
    )


def _changed_settings(checked: CheckedInput, files: RunFiles) -> Iterator[str]:
    if not files.run.exists():
        return
    with open_to_read(files.run) as file:
        old = orjson.loads(file.read())
    yield from differences(old.get("settings", {}), _manifest(checked)["settings"])


def _both_rows(
    checked: CheckedInput, files: RunFiles, agents: dict[str, str], key: RolloutKey
) -> tuple[dict[str, Any], dict[str, Any]]:
    old = next(
        row
        for line in read_lines(files.materialized_inputs)
        if rollout_key(row := parse_object(line.text)) == key
    )
    new = next(text for found, text in _plan_lines(checked, agents) if found == key)
    return old, orjson.loads(new)


def _manifest(checked: CheckedInput) -> dict[str, Any]:
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
