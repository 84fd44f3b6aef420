"""Compare: two outputs of the same tasks, paired by what the tasks say."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from reward_profiling import wire
from reward_profiling.choosing.comparison import (
    CompareOptions,
    Comparison,
    Difference,
    Pair,
    Side,
    Unpaired,
    difference_of,
    flips_of,
    judgement_of,
)
from reward_profiling.choosing.pairing import RunTask, pair_tasks
from reward_profiling.choosing.row_matching import Contents, contents_of, given_index
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    read_lines,
    replace_bytes,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.schema import Interval
from reward_profiling.insights.units import Unit, units_of
from reward_profiling.numerics.uncertainty import variance
from reward_profiling.planning.on_disk.extracts import read_labels
from reward_profiling.planning.on_disk.run_manifest import known_model
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.table_of_output import read_rollout_table

_BEGINNING = 256
"""Bytes of a comparison in which its first two members stand."""
_NOT_RUN = "not in the other run"
_NOT_SCORED = "no scored rollout in the other run"
_NOT_SCORED_HERE = "no scored rollout"


@dataclass(slots=True)
class _Run:
    """One output: its units, by what their tasks say."""

    files: RunFiles
    tasks: list[RunTask] = field(default_factory=list)
    sides: list[Side | None] = field(default_factory=list)
    """Numbers of each unit; None where nothing is scored."""
    indices: list[int | str] = field(default_factory=list)
    labels: dict[object, str] = field(default_factory=dict)


class _Plan(NamedTuple):
    """What the tasks of one output say."""

    contents: dict[int | str, Contents]
    columns: frozenset[str]
    """Names of all that rows hold."""


def compare_outputs(
    baseline: RunFiles, candidate: RunFiles, options: CompareOptions
) -> Comparison:
    """Compare a candidate with a baseline on the tasks that both scored.

    Raises:
        ConfigError: a file cannot be read, or the runs have no scored task in common.
        RecordError: a line cannot be read; names file and line.
    """
    plans, added = _plans(baseline.materialized_inputs, candidate.materialized_inputs)
    before = _read_run(baseline, plans[0], options)
    after = _read_run(candidate, plans[1], options)
    paired = pair_tasks(before.tasks, after.tasks)
    pairs = list(_scored(before, after, paired.pairs))
    if not pairs:
        raise ConfigError(
            f"{baseline.rollouts} and {candidate.rollouts} have no scored task in"
            " common; tasks are matched by what their rows say, and by agent"
        )
    overall = difference_of(None, pairs, options)
    agents = tuple(_by_agent(pairs, options))
    return Comparison(
        baseline=str(baseline.rollouts),
        candidate=str(candidate.rollouts),
        baseline_model=known_model(baseline),
        candidate_model=known_model(candidate),
        measure=options.measure,
        pass_threshold=options.pass_threshold,
        max_regression=options.max_regression,
        judgement=judgement_of(overall, agents, options),
        overall=overall,
        agents=agents,
        flips=flips_of(pairs),
        only_baseline=tuple(_alone(before, after, paired.pairs)),
        only_candidate=tuple(_alone(after, before, [(b, a) for a, b in paired.pairs])),
        warnings=tuple(_warnings(paired.num_changed, added)),
    )


def refuse_target(path: Path) -> None:
    """Refuse to write a comparison over anything but an earlier one.

    Raises:
        ConfigError: the file is another's, such as the records that are compared.
    """
    if not path.exists():
        return
    with open_to_read(path) as file:
        beginning = file.read(_BEGINNING)
    if b'"schema_version"' not in beginning or b'"baseline"' not in beginning:
        raise ConfigError(f"{path} exists and is no comparison; give another --json")


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison as JSON, whole or not at all."""
    content = orjson.dumps(
        comparison,
        default=Interval.model_dump,
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    replace_bytes(path, content)


def _plans(*paths: Path) -> tuple[list[_Plan], list[str]]:
    """Read two plans; what only one's rows hold, such as a note, is no part of a task.

    Returns them and the columns that were left out.
    """
    plans = [_read_plan(path) for path in paths]
    before, after = (plan.columns for plan in plans)
    added = sorted(before ^ after) if before and after else []
    if added:
        plans = [_read_plan(path, added) for path in paths]
    return plans, added


def _read_run(files: RunFiles, plan: _Plan, options: CompareOptions) -> _Run:
    table = read_rollout_table(files)
    run = _Run(files, labels=dict(read_labels(files.materialized_inputs)))
    reading = ProfileOptions(pass_threshold=options.pass_threshold)
    for place, unit in enumerate(units_of(table, reading)):
        index = table.tasks[unit.task]
        agent = table.agents[unit.agent]
        run.tasks.append(RunTask(place, agent, plan.contents[index]))
        run.indices.append(index)
        run.sides.append(_side(unit, index, options))
    return run


def _read_plan(path: Path, left_out: Collection[str] = ()) -> _Plan:
    contents: dict[int | str, Contents] = {}
    first: dict[int | str, int] = {}
    columns: set[str] = set()
    for line in read_lines(path):
        with located(path, line.number):
            row = parse_object(line.text)
            index = given_index(row)
        repeat = _repeat(row)
        # A seed of its own makes repeats say different things: the first one speaks,
        # wherever it stands.
        if index is not None and repeat < first.get(index, repeat + 1):
            first[index] = repeat
            # Which agent runs it is a key of its own.
            for name in (wire.AGENT_REF, wire.SKILLS_REF, *left_out):
                row.pop(name, None)
            columns |= {name for name in row if not name.startswith(wire.NG_PREFIX)}
            contents[index] = contents_of(row, _encode)
    return _Plan(contents, frozenset(columns))


def _repeat(row: Mapping[str, object]) -> int:
    """Return a row's rollout index; those that are no numbers count as the first."""
    found = row.get(wire.ROLLOUT_INDEX)
    return found if isinstance(found, int) else 0


def _encode(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _side(unit: Unit, index: int | str, options: CompareOptions) -> Side | None:
    if not unit.n:
        return None
    if options.measure == "reward":
        return Side(index, unit.n, unit.c, unit.mean, unit.variance)
    passes = [1.0] * unit.c + [0.0] * (unit.n - unit.c)
    return Side(index, unit.n, unit.c, unit.c / unit.n, variance(passes))


def _scored(
    before: _Run, after: _Run, places: Sequence[tuple[int, int]]
) -> Iterator[Pair]:
    for one, other in places:
        first, second = before.sides[one], after.sides[other]
        if first is not None and second is not None:
            label = after.labels.get(after.indices[other])
            yield Pair(before.tasks[one].agent, first, second, label)


def _by_agent(pairs: Sequence[Pair], options: CompareOptions) -> Iterator[Difference]:
    by_agent: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_agent.setdefault(pair.agent, []).append(pair)
    for agent, own in sorted(by_agent.items()):
        yield difference_of(agent, own, options)


def _alone(
    run: _Run, other: _Run, places: Sequence[tuple[int, int]]
) -> Iterator[Unpaired]:
    partner = dict(places)
    for task in run.tasks:
        place = partner.get(task.place)
        if place is None:
            reason = _NOT_RUN
        elif run.sides[task.place] is None:
            reason = _NOT_SCORED_HERE
        elif other.sides[place] is None:
            reason = _NOT_SCORED
        else:
            continue
        index = run.indices[task.place]
        yield Unpaired(
            agent=task.agent,
            task_index=index,
            label=run.labels.get(index),
            reason=reason,
        )


def _warnings(num_changed: int, added: Iterable[str]) -> Iterator[str]:
    names = ", ".join(added)
    if names:
        yield f"tasks were matched without what only one run's rows hold: {names}"
    if num_changed:
        yield (
            f"{num_changed} paired tasks were run with other settings"
            f" ({wire.PARAMS} differs): the difference is of settings, too"
        )
