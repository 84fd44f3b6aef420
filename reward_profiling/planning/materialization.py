"""Materialize: task rows become the plan, one line per rollout to collect.

The input is read twice: once to check every row, once to write. Only places and
counts are held between, so memory is set by the number of task rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import orjson

from reward_profiling import wire
from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
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
from reward_profiling.files.own_version import made_by
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.earlier_plan import (
    ADAPTIVE,
    EarlierPlan,
    Growth,
    is_collected,
    plan_changed,
    read_earlier_plan,
)
from reward_profiling.planning.on_disk.run_manifest import (
    OUTPUT,
    POLICY_MODEL,
    known_model,
    refuse_other_output,
)
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_summary import PlanSummary
from reward_profiling.planning.planner import Plan, Planner
from reward_profiling.planning.prompt_file import read_prompt
from reward_profiling.planning.row_members import RolloutKey
from reward_profiling.planning.skill_folder import read_skills
from reward_profiling.planning.task_rows import (
    Additions,
    PlannedTask,
    chosen_server,
    materialized_row,
    routing_names,
)

Resolve = Callable[[frozenset[str]], dict[str, str]]
"""From task sources, or from environment servers, to their agents."""

_MANIFEST_VERSION = 1
_SHOWN_LINES = 5


_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


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
    settings = repr(options)
    if options.prompt_config is not None or options.skills is not None:
        return (object(),)  # other files decide as well
    try:
        status = path.stat()
    except OSError:
        return (object(),)
    changed = status.st_mtime_ns, status.st_ctime_ns
    return path, settings, status.st_dev, status.st_ino, status.st_size, *changed


def _checked(path: Path, options: PlanOptions) -> CheckedInput:
    additions, warnings = _read_additions(options)
    planner = Planner(options, additions)
    digest = sha256()
    repeated_names: list[int] = []
    cut_off: set[str] = set()
    for line in read_lines(path):
        if options.limit is not None and planner.num_rows >= options.limit:
            cut_off |= _runner_beyond_limit(line, options)
            continue
        digest.update(line.text + b"\n")
        if _take_row(planner, path, line):
            repeated_names.append(line.number)
    plan = planner.finish()
    plan.warnings += warnings
    plan.warnings += _input_warnings(path, repeated_names)
    plan.warnings += _limit_warnings(plan, cut_off, options)
    return CheckedInput(path, options, plan, digest.hexdigest(), additions)


def _read_additions(options: PlanOptions) -> tuple[Additions, list[str]]:
    """Read the files that the options name; say what of them means nothing."""
    prompt, skills, warnings = None, None, []
    if options.prompt_config is not None:
        prompt, unknown = read_prompt(Path(options.prompt_config))
        if unknown:
            warnings.append(
                f"{options.prompt_config}: {', '.join(unknown)} means nothing in a"
                " prompt template; it has user and system"
            )
    if options.skills is not None:
        skills = read_skills(options.skills)
    return Additions(prompt, skills), warnings


def files_of(options: PlanOptions) -> list[Path]:
    """Return the files that a plan is made of, besides its input."""
    prompts = [] if options.prompt_config is None else [Path(options.prompt_config)]
    if options.skills is None:
        return prompts
    return [
        *prompts,
        *sorted(p for p in Path(options.skills).rglob("*") if p.is_file()),
    ]


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


def _runner_beyond_limit(line: Line, options: PlanOptions) -> set[str]:
    try:
        row = parse_object(line.text)
        agent, source = routing_names(row)
        name = chosen_server(row, options) or agent or source
    except RecordError:
        return set()  # a row that is not planned need not be usable
    return {name} if name else set()


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
    missing = sorted(cut_off - planned - set(options.routes()) - set(options.fan_out))
    if not missing or options.agent_name:
        return []
    return [f"limit {options.limit} leaves out every row of {', '.join(missing)}"]


def materialize(
    checked: CheckedInput,
    files: RunFiles,
    resolve: Resolve | None = None,
    attribute: Resolve | None = None,
) -> PlanSummary:
    """Write the plan of a checked input beside the output, whole or not at all.

    An earlier plan grows: what it planned keeps its key and its bytes. Rows that name
    no agent get the one of their task source from `resolve`, or of their environment
    server from `attribute`, where the servers can be asked.

    Raises:
        PlanChangedError: the output holds another plan, or rollouts without a plan;
            nothing was touched.
    """
    refuse_other_output(files)
    earlier = read_earlier_plan(files)
    lines = _PlanLines(
        checked,
        _late_agents(checked, resolve, attribute),
        earlier,
        is_collected=is_collected(files),
    )
    growth = Growth(earlier)

    def write(file: IO[bytes]) -> None:
        for key, text in lines:
            growth.see(key, text)
            file.write(text + b"\n")
        if growth.is_change and lines.is_collected:
            raise plan_changed(files, growth, lines, manifest(checked)["settings"])

    replace_file(files.materialized_inputs, write)
    made = manifest(checked) | {POLICY_MODEL: known_model(files)}
    made[OUTPUT] = files.rollouts.name
    if earlier.is_adaptive:
        made[ADAPTIVE] = True
        made["plan"]["num_rollouts"] = growth.num_planned
    replace_bytes(files.run, orjson.dumps(made, option=_INDENT))
    return PlanSummary(
        path=str(files.materialized_inputs),
        num_tasks=checked.plan.num_tasks,
        num_rollouts=growth.num_planned,
        num_new=growth.num_new,
        warnings=tuple(checked.plan.warnings),
        manifest=str(files.run),
    )


def refuse_change(checked: CheckedInput, files: RunFiles) -> None:
    """Refuse a plan that would change what was collected, before anything starts.

    A row whose agent only the servers can name is left to `materialize`.

    Raises:
        PlanChangedError: the output holds another plan; nothing was touched.
    """
    if not is_collected(files) or any(t.lacks_agent for t in checked.plan.tasks):
        return
    growth = Growth(read_earlier_plan(files))
    lines = _PlanLines(checked, {}, growth.earlier, is_collected=True)
    for key, text in lines:
        growth.see(key, text)
    if growth.is_change:
        raise plan_changed(files, growth, lines, manifest(checked)["settings"])


def is_planned(checked: CheckedInput, files: RunFiles) -> bool:
    """Say whether the plan on disk is the one that the input would give.

    A row whose agent only the servers can name is not known without them.
    """
    if any(task.lacks_agent for task in checked.plan.tasks):
        return False
    growth = Growth(read_earlier_plan(files))
    for key, text in _PlanLines(checked, {}, growth.earlier, is_collected=True):
        growth.see(key, text)
    return not growth.is_change and not growth.num_new


class _PlanLines:
    """The lines of a plan in dispatch order; may be read more than once."""

    def __init__(
        self,
        checked: CheckedInput,
        agents: dict[int, str],
        earlier: EarlierPlan,
        *,
        is_collected: bool,
    ) -> None:
        self.is_collected = is_collected
        self._checked = checked
        self._agents = agents
        tasks = [
            replace(task, agent=task.agent or agents.get(task.place))
            for task in checked.plan.tasks
        ]
        plan = replace(checked.plan, tasks=tasks)
        if earlier.indices:
            plan = plan.keeping(earlier.indices, is_adaptive=earlier.is_adaptive)
        self._plan = plan
        self._earlier = earlier

    def __iter__(self) -> Iterator[tuple[RolloutKey, bytes]]:
        """Yield each planned rollout's key and its line, without the newline."""
        options = self._checked.options
        rollouts = self._plan.rollouts(interleave=options.interleave_repeats)
        place, row = -1, {}
        with open_to_read(self._checked.path) as file:
            for task, index in rollouts:
                if task.place != place:
                    place, row = task.place, read_row(file, task.place)
                yield (task.task_index, index), self._line(row, task, index)

    def _line(self, row: dict[str, Any], task: PlannedTask, index: int) -> bytes:
        checked, late = self._checked, self._agents.get(task.place)
        known = replace(task, agent=None) if late else task
        planned = materialized_row(
            row, known, index, checked.options, checked.additions
        )
        text = orjson.dumps(planned)
        if late is None:
            return text
        key = (task.task_index, index)
        if task.server and self.is_collected and self._earlier.has(key, text):
            return text  # planned before without its agent, which it can do without
        # Gym appends an agent that only the servers could name.
        return orjson.dumps({**planned, wire.AGENT_REF: {"name": late}})


def _late_agents(
    checked: CheckedInput, resolve: Resolve | None, attribute: Resolve | None
) -> dict[int, str]:
    """Return the agent of each row that names none, as the servers know it, by place.

    A server that stands for no one agent leaves its rows without.
    """
    lacking = [task for task in checked.plan.tasks if task.lacks_agent]
    servers = {task.place: task.server for task in lacking if task.server is not None}
    agents = _agents_by_source(
        checked, [task.place for task in lacking if task.server is None], resolve
    )
    if attribute is not None and servers:
        found = attribute(frozenset(servers.values()))
        agents |= {p: found[name] for p, name in servers.items() if name in found}
    return agents


def _agents_by_source(
    checked: CheckedInput, places: list[int], resolve: Resolve | None
) -> dict[int, str]:
    """Return the agent of each row that only names a task source, by its place."""
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
        "made_by": made_by(),
        "input": {
            "path": str(checked.path),
            "num_rows": checked.plan.num_rows,
            "sha256": checked.digest,
        },
        "settings": _settings(checked),
        "plan": {
            "num_tasks": checked.plan.num_tasks,
            "num_rollouts": checked.plan.num_rollouts,
        },
    }


def _settings(checked: CheckedInput) -> dict[str, Any]:
    """Return the options; a file that one names stands there by its content.

    Where the template lies is no part of what it makes; the path of skills is one.
    """
    prompt, skills = checked.additions.prompt, checked.additions.skills
    return {
        **asdict(checked.options),
        "prompt_config": None if prompt is None else asdict(prompt),
        "skills": skills,
    }
