"""Compare: two outputs of the same tasks, paired by what the tasks say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tasks.adapters.extracts import read_labels
from tasks.adapters.jsonl import located, parse_object, read_lines, replace_bytes
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.comparison import (
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
from tasks.core.errors import ConfigError
from tasks.core.options import ProfileOptions
from tasks.core.pairing import RunTask, pair_tasks
from tasks.core.row_matching import Contents, contents_of, given_index
from tasks.core.uncertainty import variance
from tasks.core.units import Unit, units_of
from tasks.operations.policy_model import known_model
from tasks.operations.rollout_columns import read_rollout_table

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


def compare_outputs(
    baseline: RunFiles, candidate: RunFiles, options: CompareOptions
) -> Comparison:
    """Compare a candidate with a baseline on the tasks that both scored.

    Raises:
        ConfigError: a file cannot be read, or the runs have no scored task in common.
        RecordError: a line cannot be read; names file and line.
    """
    before, after = _read_run(baseline, options), _read_run(candidate, options)
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
        warnings=tuple(_warnings(paired.num_changed)),
    )


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison as JSON, whole or not at all."""
    content = orjson.dumps(
        comparison.model_dump(mode="json"),
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    replace_bytes(path, content)


def _read_run(files: RunFiles, options: CompareOptions) -> _Run:
    table = read_rollout_table(files)
    contents = _contents(files.materialized_inputs)
    run = _Run(files, labels=dict(read_labels(files.materialized_inputs)))
    reading = ProfileOptions(pass_threshold=options.pass_threshold)
    for place, unit in enumerate(units_of(table, reading)):
        index = table.tasks[unit.task]
        agent = table.agents[unit.agent]
        run.tasks.append(RunTask(place, agent, contents[index]))
        run.indices.append(index)
        run.sides.append(_side(unit, index, options))
    return run


def _contents(plan: Path) -> dict[int | str, Contents]:
    contents: dict[int | str, Contents] = {}
    for line in read_lines(plan):
        with located(plan, line.number):
            row = parse_object(line.text)
            index = given_index(row)
        if index is not None and index not in contents:
            # Which agent runs it is a key of its own.
            row.pop(wire.AGENT_REF, None)
            contents[index] = contents_of(row, _encode)
    return contents


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


def _warnings(num_changed: int) -> Iterator[str]:
    if num_changed:
        yield (
            f"{num_changed} paired tasks were run with other settings"
            f" ({wire.PARAMS} differs): the difference is of settings, too"
        )
