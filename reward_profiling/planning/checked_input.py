"""The input of a plan: task rows, read and checked whole before anything is written."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    Line,
    has_duplicate_keys,
    open_to_read,
    parse_object,
    read_lines,
    refuse_wide_integers,
)
from reward_profiling.planning.additions.option_files import read_additions
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import Plan
from reward_profiling.planning.planner import Planner
from reward_profiling.planning.routing import chosen_server, routing_names
from reward_profiling.planning.task_rows import Additions

_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CheckedInput:
    """An input whose every row can be planned."""

    path: Path
    options: PlanOptions
    plan: Plan
    digest: str
    """SHA-256 of the planned lines, line endings left out."""
    additions: Additions
    """What the options' own files add to the rows, as read now."""

    @property
    def settings(self) -> dict[str, Any]:
        """The options by name; a file that one names stands there by its content.

        Where the template lies is no part of what it makes; the path of skills is one.
        """
        prompt, skills = self.additions.prompt, self.additions.skills
        return {
            **self.options.model_dump(mode="json"),
            "prompt_config": None if prompt is None else prompt.model_dump(),
            "skills": skills,
        }


_HELD: WeakValueDictionary[tuple[object, ...], CheckedInput] = WeakValueDictionary()
"""Checked inputs that somebody still has: a run asks before it starts, and its step."""


def check_input(path: Path, options: PlanOptions) -> CheckedInput:
    """Read the task rows whole and plan them.

    An input whose check somebody still holds, and that is the same file, unchanged, is
    not read again.

    Raises:
        ConfigError: the file, or one that the options name, cannot be read.
        DatasetError: rows that cannot be planned, all of them named.
    """
    state = _state_of(path, options)
    held = _HELD.get(state)
    if held is not None:
        return held
    checked = _checked(path, options)
    if state == _state_of(path, options):
        _HELD[state] = checked
    return checked


def _state_of(path: Path, options: PlanOptions) -> tuple[object, ...]:
    """Return what is another when the file or the options are."""
    settings = options.model_dump_json()
    if options.prompt_config is not None or options.skills is not None:
        return (object(),)  # other files decide as well
    try:
        status = path.stat()
    except OSError:
        return (object(),)
    changed = status.st_mtime_ns, status.st_ctime_ns
    return path, settings, status.st_dev, status.st_ino, status.st_size, *changed


def _checked(path: Path, options: PlanOptions) -> CheckedInput:
    additions, warnings = read_additions(options)
    planner = Planner(options, additions)
    digest = sha256()
    repeated_names: list[int] = []
    cut_off: set[str] = set()
    for line in read_lines(path):
        if options.limit is not None and planner.num_rows >= options.limit:
            cut_off.add(_runner_beyond_limit(line, options))
            continue
        digest.update(line.text + b"\n")
        if _take_row(planner, path, line):
            repeated_names.append(line.number)
    plan = planner.finish()
    plan.warnings += warnings
    plan.warnings += _input_warnings(path, repeated_names)
    plan.warnings += _limit_warnings(plan, cut_off, options)
    return CheckedInput(path, options, plan, digest.hexdigest(), additions)


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


def _runner_beyond_limit(line: Line, options: PlanOptions) -> str:
    """Return the name that a row would have been sent to; "" where it gives none."""
    try:
        row = parse_object(line.text)
        agent, source = routing_names(row)
        return chosen_server(row, options) or agent or source or ""
    except RecordError:
        return ""  # a row that is not planned need not be usable


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
    planned = {task.server or task.agent for task in plan.tasks}
    mapped = {"", *options.routes(), *options.fan_out}
    missing = sorted(cut_off - planned - mapped)
    if not missing or options.agent_name:
        return []
    return [f"limit {options.limit} leaves out every row of {', '.join(missing)}"]
