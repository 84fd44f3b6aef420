"""Headline numbers: each with its n, and with its interval or the reason for none."""

from reward_profiling.insights.document import Insights
from reward_profiling.insights.measures.reward import RewardEstimate
from reward_profiling.insights.section import Section
from reward_profiling.numerics.figures import setting
from reward_profiling.reporting.page.parts import KeyNumber
from reward_profiling.reporting.page.words import count, interval, number, of, share

_NO_SPREAD = "no interval: all values are equal, or there are too few"


def key_numbers(insights: Insights) -> tuple[KeyNumber, ...]:
    """Return the run's headline numbers, the mean reward first."""
    run = insights.run
    numbers = (
        _coverage(run), _mean(insights), _pass_rate(insights), _signal(run),
        _majority(run), _cut_off(run), _empty(run),
    )  # fmt: skip
    return tuple(number for number in numbers if number is not None)


def reward_spread(insights: Insights, reward: RewardEstimate) -> str:
    """Return a mean's interval in words; its error where it has none."""
    if reward.macro_mean is None:
        return ""
    if reward.interval is not None and reward.interval.low < reward.interval.high:
        confidence = share(insights.reading.confidence)
        return f"{confidence} interval {interval(reward.interval)}"
    if reward.standard_error:
        return f"standard error {number(reward.standard_error)}"
    return _NO_SPREAD


def _mean(insights: Insights) -> KeyNumber:
    reward = insights.run.reward
    zeros = insights.reading.failures_as_zero
    return KeyNumber(
        label="Mean reward" + (", failures as 0" if zeros else ""),
        value="unknown" if reward.macro_mean is None else number(reward.macro_mean),
        spread=reward_spread(insights, reward),
        basis=f"mean over {count(reward.num_tasks, 'scored task')}",
        caution=reward.caution or "",
    )


def _pass_rate(insights: Insights) -> KeyNumber:
    passing = insights.run.passing
    error = passing.pass_rate_error
    spread = f"standard error {share(error)}" if error else _NO_SPREAD
    return KeyNumber(
        label=f"Pass rate at {setting(insights.reading.pass_threshold)}",
        value="unknown" if passing.pass_rate is None else share(passing.pass_rate),
        spread="" if passing.pass_rate is None else spread,
        basis=f"{of(passing.passed, passing.num_rollouts)} rollouts of"
        f" {count(passing.num_tasks, 'task')}",
    )


def _coverage(run: Section) -> KeyNumber:
    coverage = run.coverage
    lacking = [
        f"{amount:,} {word}"
        for amount, word in (
            (coverage.unscored, "without a usable reward"),
            (coverage.masked, "masked"),
            (coverage.failed, "failed"),
            (coverage.missing, "missing"),
        )
        if amount
    ]
    known = coverage.scored_share
    return KeyNumber(
        label="Scored",
        value="unknown" if known is None else share(known),
        spread=f"{of(coverage.scored, coverage.planned)} planned rollouts",
        basis=f"{of(coverage.num_scored_tasks, coverage.num_tasks)} tasks",
        caution=", ".join(lacking),
    )


def _signal(run: Section) -> KeyNumber:
    signal = run.signal
    judged = signal.num_signal + signal.num_zero_signal
    unjudged = signal.undetermined
    return KeyNumber(
        label="Tasks that can teach",
        value=of(signal.num_signal, judged) if judged else "unknown",
        spread=f"{count(signal.num_zero_signal, 'task')} with equal rewards"
        if judged
        else "",
        basis="tasks with two scored rollouts or more",
        caution=f"{count(unjudged, 'task')} undetermined" if unjudged else "",
    )


def _majority(run: Section) -> KeyNumber | None:
    majority = run.passing.majority
    if majority is None:
        return None
    tied = f"{count(majority.num_tied, 'task')} tied" if majority.num_tied else ""
    return KeyNumber(
        label="Most common answer passes",
        value=share(majority.pass_rate),
        spread=tied,
        basis=f"{count(majority.num_rollouts, 'rollout')} of"
        f" {count(majority.num_tasks, 'task')}",
        caution=f"{count(majority.num_split, 'task')} in which one answer both passed"
        " and failed"
        if majority.num_split
        else "",
    )


def _cut_off(run: Section) -> KeyNumber | None:
    length = run.length
    if not length.num_truncation_known:
        return None
    cut, whole = length.truncated, length.finished
    return KeyNumber(
        label="Cut off",
        value=share(length.num_truncated / length.num_truncation_known),
        spread=f"they pass {share(cut.pass_rate)} (n = {cut.num_rollouts:,}), others"
        f" {share(whole.pass_rate)} (n = {whole.num_rollouts:,})"
        if cut.num_rollouts
        else "",
        basis=f"{of(length.num_truncated, length.num_truncation_known)} records",
    )


def _empty(run: Section) -> KeyNumber | None:
    length = run.length
    if not length.num_empty:
        return None
    return KeyNumber(
        label="Empty answers",
        value=share(length.num_empty / length.num_empty_known),
        spread=f"their mean reward {number(length.empty.mean_reward)}"
        f" (n = {length.empty.num_rollouts:,})",
        basis=f"{of(length.num_empty, length.num_empty_known)} records",
    )
