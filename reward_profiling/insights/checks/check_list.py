"""Health checks: signs in a run's numbers that the run or its verifier is broken.

Each check looks at one agent and returns at most one finding, with its evidence and a
remedy. A check with too little data returns nothing, so no finding does not prove that
a run is healthy.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from reward_profiling.insights.checks import (
    answer_checks,
    collapse_check,
    coverage_checks,
    signal_checks,
)
from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.metric_summaries import MetricSummary
from reward_profiling.profiling.finding import SEVERITIES, Finding

NAMES: Mapping[str, str] = {
    "nothing_scored": "no rollout of the agent has a reward",
    "mostly_masked": "the server masked many of the records",
    "environment_died": "from some point on, nearly every rollout failed",
    "low_coverage": "some of the planned rollouts have no reward",
    "context_exceeded": "rollouts that outgrew the model's context",
    "unscored_rewards": "records whose reward is missing, null, text or not finite",
    "scored_errors": "records that hold an error beside their reward",
    "constant_reward": "every reward is the same",
    "reward_ignores_answer": "different answers to a task always get the same reward",
    "answer_scored_differently": "the same answer to a task gets different rewards",
    "repeats_identical": "the repeats of a task give the same answer",
    "empty_answers": "records without an answer",
    "empty_answers_rewarded": "records without an answer pass",
    "truncated_answers": "answers that were cut off",
    "threshold_unreached": "rewards vary, but none reaches the pass threshold",
    "threshold_always_reached": "rewards vary, but all reach the pass threshold",
    "never_passes": "no task ever passes",
    "always_passes": "every task always passes",
    "little_signal": "most tasks have no learning signal",
    "signal_only_in_components": "tasks whose components differ but not the total",
    "too_few_repeats": "most tasks have fewer than two scored rollouts",
    "unequal_repeats": "some tasks have twice as many rollouts as others, or more",
    "length_bias": "within a task, longer answers get higher or lower rewards",
    "metric_is_identifier": "a numeric column that identifies tasks",
}
"""Every kind of finding, and what it means."""

_Check = Callable[[AgentPart], Finding | None]


def check_health(
    parts: Sequence[AgentPart], metrics: Sequence[MetricSummary]
) -> tuple[Finding, ...]:
    """Return what the checks find, the worst first, then in order of `parts`."""
    found = [finding for part in parts for finding in _of_agent(part)]
    found += _of_metrics(metrics)
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _of_agent(agent: AgentPart) -> Iterator[Finding]:
    """Yield what the checks find of one agent, in their order."""
    coverage = agent.section.coverage
    if coverage.missing == coverage.planned:  # not tried: says nothing of the verifier
        yield from filter(None, [coverage_checks.low_coverage(agent)])
        return
    if not coverage.scored:
        yield coverage_checks.nothing_scored(agent)
        return
    found = {check: check(agent) for check in _CHECKS}
    for check, finding in found.items():
        causes = _SAID_BY.get(check, ())
        if finding is not None and not any(found[cause] for cause in causes):
            yield finding


_CHECKS: tuple[_Check, ...] = (
    collapse_check.environment_died,
    coverage_checks.mostly_masked,
    coverage_checks.low_coverage,
    coverage_checks.context_exceeded,
    coverage_checks.unscored_rewards,
    coverage_checks.scored_errors,
    signal_checks.constant_reward,
    answer_checks.reward_ignores_answer,
    answer_checks.repeats_identical,
    answer_checks.answer_scored_differently,
    answer_checks.empty_answers_rewarded,
    answer_checks.empty_answers,
    answer_checks.truncated_answers,
    signal_checks.threshold_unreached,
    signal_checks.threshold_always_reached,
    signal_checks.never_passes,
    signal_checks.always_passes,
    signal_checks.little_signal,
    signal_checks.signal_only_in_components,
    coverage_checks.too_few_repeats,
    coverage_checks.unequal_repeats,
    answer_checks.length_bias,
)

_SAID_BY: Mapping[_Check, tuple[_Check, ...]] = {
    answer_checks.reward_ignores_answer: (
        signal_checks.constant_reward,
        answer_checks.repeats_identical,
    ),
    signal_checks.little_signal: (
        signal_checks.constant_reward,
        answer_checks.reward_ignores_answer,
        answer_checks.repeats_identical,
        signal_checks.never_passes,
        signal_checks.always_passes,
    ),
    signal_checks.never_passes: (
        signal_checks.constant_reward,
        signal_checks.threshold_unreached,
    ),
    signal_checks.always_passes: (
        signal_checks.constant_reward,
        signal_checks.threshold_always_reached,
    ),
}
"""For a check, those that explain more: if one of them finds something, skip it."""


def _of_metrics(metrics: Sequence[MetricSummary]) -> Iterator[Finding]:
    names = [metric.name for metric in metrics if metric.is_identifier]
    if names:
        is_one = len(names) == 1
        verb = "looks like an identifier" if is_one else "look like identifiers"
        yield Finding(
            name="metric_is_identifier",
            severity="note",
            agent=None,
            sentence=f"{', '.join(names)} {verb} of tasks; a mean of identifiers has no"
            " meaning",
            evidence={"columns": ", ".join(names)},
            remedy=(
                f"ignore {'it' if is_one else 'them'} when you read the metrics;"
                f" the table lists {'it' if is_one else 'them'} last"
            ),
        )
