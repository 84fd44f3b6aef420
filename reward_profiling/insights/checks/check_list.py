"""Health: what in a run's numbers says that they, or the verifier, are not sound.

Each check looks at one agent and gives at most one finding, with its evidence and what
to do. A check that has too little to go by says nothing: silence is no proof of health.
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
    "mostly_masked": "most records say that their reward measures nothing",
    "environment_died": "from some point on, nearly every rollout went wrong",
    "low_coverage": "a part of the planned rollouts has no reward",
    "unscored_rewards": "records whose reward is missing, null, text or not finite",
    "constant_reward": "every reward is the same",
    "reward_ignores_answer": "different answers to a task always get the same reward",
    "answer_scored_differently": "the same answer to a task gets different rewards",
    "repeats_identical": "the repeats of a task give the same answer",
    "empty_answers": "records without an answer",
    "empty_answers_rewarded": "records without an answer pass",
    "truncated_answers": "answers that were cut off",
    "threshold_unreached": "rewards vary, and none reaches the pass threshold",
    "threshold_always_reached": "rewards vary, and all reach the pass threshold",
    "never_passes": "no task ever passes",
    "always_passes": "every task always passes",
    "little_signal": "most tasks have no learning signal",
    "signal_only_in_components": "tasks whose components differ and total does not",
    "too_few_repeats": "most tasks have fewer than two scored rollouts",
    "unequal_repeats": "some tasks have twice as many rollouts as others, or more",
    "length_bias": "within a task, longer answers are rewarded differently",
    "metric_is_identifier": "a numeric column that names tasks",
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
    if coverage.missing == coverage.planned:  # not tried yet: no word of its verifier
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
    coverage_checks.unscored_rewards,
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
"""Findings that say the same, and more: with one of them the first is left out."""


def _of_metrics(metrics: Sequence[MetricSummary]) -> Iterator[Finding]:
    names = [metric.name for metric in metrics if metric.is_identifier]
    if names:
        is_one = len(names) == 1
        verb = "names tasks and measures" if is_one else "name tasks and measure"
        yield Finding(
            name="metric_is_identifier",
            severity="note",
            agent=None,
            sentence=f"{', '.join(names)} {verb} nothing; means of it say nothing",
            evidence={"columns": ", ".join(names)},
            remedy=(
                f"leave {'it' if is_one else 'them'} out when you read the metrics;"
                f" here {'it stands' if is_one else 'they stand'} last"
            ),
        )
