"""The input of a plan: task rows, read and checked whole before anything is written."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from reward_profiling.errors import RecordError
from reward_profiling.files.file_kinds import refuse_other_kinds
from reward_profiling.files.json_lines import (
    Line,
    has_duplicate_keys,
    open_to_read,
    parse_object,
    read_lines,
    refuse_wide_integers,
)
from reward_profiling.files.source_marks import Glimpse, glimpse
from reward_profiling.planning.additions.option_files import (
    option_files,
    read_additions,
)
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.planned_tasks import Plan
from reward_profiling.planning.planner import Planner
from reward_profiling.planning.routing import chosen_server, routing_names
from reward_profiling.planning.task_rows import Additions

_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """An input whose every row can be planned."""

    path: Path
    options: PlanOptions
    plan: Plan
    digest: str
    """SHA-256 of the planned lines, line endings left out."""
    additions: Additions
    """What the options' own files add to the rows, as read now."""
    seen: tuple[Glimpse, ...]
    """The file, and those that the options name, as they were before it was read."""

    @property
    def settings(self) -> dict[str, Any]:
        """The options by name; a file that one names stands there by its content.

        Where the template lies is no part of what it makes; the path of skills is one.
        """
        prompt, skills = self.additions.prompt, self.additions.skills
        return {
            **asdict(self.options),
            "prompt_config": None if prompt is None else asdict(prompt),
            "skills": skills,
        }


def check_input(
    path: Path, options: PlanOptions, known: CheckedInput | None = None
) -> CheckedInput:
    """Read the task rows whole and plan them.

    An earlier check of the same input, `known`, stands while its files are unchanged.

    Raises:
        ConfigError: the file, or one that the options name, cannot be read.
        DatasetError: rows that cannot be planned, all of them named.
    """
    is_same = known is not None and known.options == options
    if known is not None and is_same and known.seen == _seen(path, options):
        return known
    refuse_other_kinds(path)
    additions, warnings = read_additions(options)
    seen = _seen(path, options)  # before it is read: what changes meanwhile is seen
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
    return CheckedInput(path, options, plan, digest.hexdigest(), additions, seen)


def _seen(path: Path, options: PlanOptions) -> tuple[Glimpse, ...]:
    return tuple(glimpse(one) for one in (path, *option_files(options)))


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
        # JSON leaves repeated names open; Python and Gym both take the last one.
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
