"""Compares two outputs of the same tasks, paired by the content of the tasks."""

from collections.abc import Iterable, Iterator, Sequence

from reward_profiling import wire
from reward_profiling.choosing.comparing.judgement import judgement_of
from reward_profiling.choosing.comparing.paired_difference import difference_of
from reward_profiling.choosing.comparing.pairing import Positions, RunTask, pair_tasks
from reward_profiling.choosing.comparing.run_tasks import read_both_plans, read_tasks
from reward_profiling.choosing.comparing.task_pairs import Pair, flips_of
from reward_profiling.choosing.comparison import (
    CompareOptions,
    Comparison,
    Difference,
    Unpaired,
)
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.run_manifest import known_model

_NOT_RUN = "not in the other run"
_NOT_SCORED = "no scored rollout in the other run"
_NOT_SCORED_HERE = "no scored rollout"


def compare_outputs(
    baseline: RunFiles, candidate: RunFiles, options: CompareOptions
) -> Comparison:
    """Compare a candidate with a baseline on the tasks that both scored.

    Raises:
        ConfigError: a file cannot be read, or the runs have no scored task in common.
        RecordError: a line cannot be read; names file and line.
    """
    plans = read_both_plans(baseline.materialized_inputs, candidate.materialized_inputs)
    before = read_tasks(baseline, plans.baseline, options)
    after = read_tasks(candidate, plans.candidate, options)
    paired = pair_tasks(before, after)
    pairs = list(_scored(before, after, paired.pairs))
    if not pairs:
        raise ConfigError(
            f"{baseline.rollouts} and {candidate.rollouts} have no scored task in"
            " common; compare runs with the same rows and agents"
        )
    overall = difference_of(None, pairs, options)
    agents = tuple(_by_agent(pairs, options))
    turned = [(after_place, place) for place, after_place in paired.pairs]
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
        only_candidate=tuple(_alone(after, before, turned)),
        warnings=tuple(_warnings(paired.num_changed, plans.left_out)),
    )


def _scored(
    before: Sequence[RunTask], after: Sequence[RunTask], places: Positions
) -> Iterator[Pair]:
    for one, other in places:
        first, second = before[one], after[other]
        if first.side is not None and second.side is not None:
            yield Pair(first.agent, first.side, second.side, second.label)


def _by_agent(pairs: Sequence[Pair], options: CompareOptions) -> Iterator[Difference]:
    by_agent: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_agent.setdefault(pair.agent, []).append(pair)
    for agent, own in sorted(by_agent.items()):
        yield difference_of(agent, own, options)


def _alone(
    run: Sequence[RunTask], other: Sequence[RunTask], places: Positions
) -> Iterator[Unpaired]:
    """Yield the tasks of a run that are not compared; `places` has its own first."""
    partner = dict(places)
    for place, task in enumerate(run):
        if place not in partner:
            reason = _NOT_RUN
        elif task.side is None:
            reason = _NOT_SCORED_HERE
        elif other[partner[place]].side is None:
            reason = _NOT_SCORED
        else:
            continue
        yield Unpaired(
            agent=task.agent,
            task_index=task.task_index,
            label=task.label,
            reason=reason,
        )


def _warnings(num_changed: int, left_out: Iterable[str]) -> Iterator[str]:
    names = ", ".join(left_out)
    if names:
        yield f"columns that only one run has were ignored to match tasks: {names}"
    if num_changed:
        yield (
            f"{num_changed} paired tasks ran with other settings ({wire.PARAMS}"
            " differs), which may explain a part of the difference"
        )
