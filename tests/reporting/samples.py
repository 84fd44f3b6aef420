"""Insights as a run would give them, from rewards that are drawn by a seed."""

import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from reward_profiling.insights.completion_curve import CompletionPoint
from reward_profiling.insights.document import Insights, ReadingSettings
from reward_profiling.insights.measures.components import Component
from reward_profiling.insights.measures.coverage import Coverage
from reward_profiling.insights.measures.learning_signal import Signal, UsefulGroups
from reward_profiling.insights.measures.length import Correlation, Length, Subset
from reward_profiling.insights.measures.passing import PassAt, Passing
from reward_profiling.insights.measures.reward import RewardEstimate
from reward_profiling.insights.metric_summaries import MetricSummary
from reward_profiling.insights.section import Section
from reward_profiling.insights.task_insights import RolloutNumbers, TaskInsight
from reward_profiling.numerics.uncertainty import Interval
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.rollout_table import StatusName

READING = ReadingSettings(
    pass_threshold=1.0, pass_tolerance=1e-9, signal_tolerance=1e-6
)
STATES: tuple[StatusName, ...] = (
    "scored", "unscored", "masked", "failed", "missing",
)  # fmt: skip

FINDINGS = (
    Finding(
        name="constant_reward", severity="critical", agent="number_match_agent",
        sentence="Every one of 58 scored rollouts has the reward 0.5, over 8 tasks.",
        evidence={"scored": 58, "tasks": 8, "reward": 0.5, "field": "reward"},
        remedy="Look at what the verifier returns for a right and for a wrong answer.",
    ),
    Finding(
        name="truncated_answers", severity="warning", agent=None,
        sentence="31 of 190 answers were cut off, and none of them passed.",
        evidence={"truncated": 31, "records": 190, "pass_rate": 0.0, "limit": None},
        remedy="Raise max_output_tokens, or count what is cut off apart.",
    ),
    Finding(
        name="few_tasks", severity="note", agent=None,
        sentence="24 tasks are few: the interval of the mean is wide.",
        evidence={"tasks": 24}, remedy="Add tasks; more repeats help less.",
    ),
)  # fmt: skip


def wilson(passed: int, scored: int) -> Interval | None:
    if not scored:
        return None
    z, p = 1.959964, passed / scored
    middle = p + z * z / (2 * scored)
    half = z * math.sqrt(p * (1 - p) / scored + z * z / (4 * scored * scored))
    whole = 1 + z * z / scored
    return Interval(low=(middle - half) / whole, high=(middle + half) / whole)


def a_task(
    index: int | str,
    agent: str,
    rewards: Sequence[float | None],
    *,
    tokens: Sequence[float | None] | None = None,
    label: str | None = None,
) -> TaskInsight:
    """Make a task of its rewards; None is a rollout without one, of another kind."""
    n = len(rewards)
    kinds = iter(STATES[1:] * n)
    states = tuple("scored" if r is not None else next(kinds) for r in rewards)
    lengths = tuple(None if t is None else float(t) for t in tokens or [100.0] * n)
    cut = tuple(None if t is None else t >= 4096 for t in lengths)
    scored = [reward for reward in rewards if reward is not None]
    finite = [reward for reward in scored if math.isfinite(reward)]
    passed = sum(reward >= 1.0 - 1e-9 for reward in scored)
    known = [t for t in lengths if t is not None]
    rate = passed / len(scored) if scored else None
    is_judged = len(scored) > 1
    return TaskInsight(
        task_index=index, agent=agent, label=label, planned=n, scored=len(scored),
        unscored=states.count("unscored"), masked=states.count("masked"),
        failed=states.count("failed"), missing=states.count("missing"), passed=passed,
        pass_rate=rate, interval=wilson(passed, len(scored)), exact_interval=None,
        upper_bound=1 - 0.05 ** (1 / len(scored)) if scored and not passed else None,
        lower_bound=0.05 ** (1 / len(scored)) if scored and rate == 1 else None,
        task_class="undetermined" if not is_judged
        else "never" if not passed else "always" if rate == 1 else "sometimes",
        has_signal=max(scored) - min(scored) > 1e-6 if is_judged else None,
        informativeness=(rate or 0.0) * (1 - (rate or 0.0)) if is_judged else None,
        rank=None, mean=fmean(scored) if finite == scored and scored else None,
        std=stdev(scored) if finite == scored and is_judged else None,
        min=min(scored, default=None), max=max(scored, default=None),
        mean_tokens=fmean(known) if known else None, num_with_tokens=len(known),
        truncated=sum(c is True for c in cut), empty=0, distinct_answers=None,
        rollouts=RolloutNumbers(
            rollout_index=tuple(range(n)), state=states, reward=tuple(rewards),
            output_tokens=lengths, is_truncated=cut,
            is_empty=(False,) * n, attempts=tuple(int(s == "failed") for s in states),
        ),
    )  # fmt: skip


def a_section(agent: str | None, tasks: Sequence[TaskInsight]) -> Section:
    rewards = [
        r for t in tasks if t.rollouts for r in t.rollouts.reward if r is not None
    ]
    means = [task.mean for task in tasks if task.mean is not None]
    rates = [task.pass_rate for task in tasks if task.pass_rate is not None]
    error = _error(means)
    mean = fmean(means) if means else None
    spread = None
    if mean is not None and error:
        spread = Interval(low=mean - 2.07 * error, high=mean + 2.07 * error)
    classes = [task.task_class for task in tasks]
    counts = {name: sum(getattr(task, name) for task in tasks) for name in STATES}
    planned = sum(task.planned for task in tasks)
    return Section(
        agent=agent,
        coverage=Coverage(
            num_tasks=len(tasks), num_scored_tasks=len(means), planned=planned,
            scored_share=counts["scored"] / planned if planned else None,
            failures_by_class={}, **counts,
        ),
        reward=RewardEstimate(
            macro_mean=mean, num_tasks=len(means), standard_error=error,
            interval=spread,
            caution=None if len(means) > 1 else "one task says nothing of others",
            rerun_standard_error=error and error / 3, num_rerun_tasks=len(means),
            micro_mean=fmean(rewards) if rewards else None, num_rollouts=len(rewards),
            micro_standard_error=error, mean_failures_as_zero=mean and mean * 0.97,
            num_tasks_failures_as_zero=len(means),
            between_task_std=stdev(means) if len(means) > 1 else None,
            within_task_std=0.3 if means else None,
            min=min(rewards, default=None), max=max(rewards, default=None),
        ),
        passing=Passing(
            pass_rate=fmean(rates) if rates else None, num_tasks=len(rates),
            pass_rate_error=_error(rates),
            passed=sum(task.passed for task in tasks),
            num_rollouts=counts["scored"], curve=_curve(tasks),
        ),
        signal=Signal(
            never=classes.count("never"), sometimes=classes.count("sometimes"),
            always=classes.count("always"), undetermined=classes.count("undetermined"),
            num_signal=sum(task.has_signal is True for task in tasks),
            num_zero_signal=sum(task.has_signal is False for task in tasks),
            zero_signal_share=None, num_signal_in_components_only=0,
            never_upper_bound=0.31, never_rollouts=8, groups=_groups(tasks),
            components=(Component(
                name="format", num_rollouts=counts["scored"], mean=0.9, std=0.0,
                num_tasks=len(means), num_signal=3, num_signal_only_here=1,
            ),) if means else (),
        ),
        length=_length(tasks),
    )  # fmt: skip


def _error(values: Sequence[float]) -> float | None:
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def _curve(tasks: Sequence[TaskInsight]) -> tuple[PassAt, ...]:
    most = max((task.scored for task in tasks), default=0)
    points = []
    for k in [*range(1, min(most, 16) + 1), *([most] if most > 16 else [])]:
        able = [task for task in tasks if task.scored >= k]
        at = [
            1 - math.comb(t.scored - t.passed, k) / math.comb(t.scored, k) for t in able
        ]
        hat = [math.comb(t.passed, k) / math.comb(t.scored, k) for t in able]
        points.append(PassAt(
            k=k, pass_at_k=fmean(at), pass_hat_k=fmean(hat), num_tasks=len(able),
            pass_at_k_error=stdev(at) / math.sqrt(len(at)) if len(at) > 1 else None,
            pass_hat_k_error=stdev(hat) / math.sqrt(len(hat)) if len(at) > 1 else None,
        ))  # fmt: skip
    return tuple(points)


def _groups(tasks: Sequence[TaskInsight]) -> tuple[UsefulGroups, ...]:
    groups = []
    for size in (4, 8, 16, 32):
        able = [t for t in tasks if t.scored >= size]
        short = [t for t in tasks if 2 <= t.scored < size]
        shares = [
            1 - (t.passed / t.scored) ** size - (1 - t.passed / t.scored) ** size
            for t in (*able, *short)
        ]
        useful = fmean(shares[: len(able)]) if able else None
        plug_in = fmean(shares) if shares else None
        groups.append(UsefulGroups(
            group_size=size, useful_share=useful,
            mixed_share=useful and 0.9 * useful, num_tasks=len(able),
            plug_in_useful_share=plug_in, plug_in_mixed_share=plug_in and 0.9 * plug_in,
            num_plug_in_tasks=len(shares), num_short_tasks=len(short),
        ))  # fmt: skip
    return tuple(groups)


def _length(tasks: Sequence[TaskInsight]) -> Length:
    rows = [
        row
        for task in tasks
        if task.rollouts
        for row in zip(
            task.rollouts.reward, task.rollouts.output_tokens,
            task.rollouts.is_truncated, strict=True,
        )
    ]  # fmt: skip
    lengths = sorted(tokens for _, tokens, _ in rows if tokens is not None)
    cut = [row for row in rows if row[2] is True]
    whole = [row for row in rows if row[2] is False]
    none = _subset([])
    return Length(
        correlation=Correlation(
            num_rollouts=len(rows), num_tasks=len(tasks), pearson=-0.4,
            spearman=-0.42 if len(rows) > 1 else None, within_pearson=-0.1,
            within_spearman=-0.12 if len(rows) > 1 else None,
        ),
        mean_tokens=fmean(lengths) if lengths else None,
        median_tokens=lengths[len(lengths) // 2] if lengths else None,
        p95_tokens=lengths[-1] if lengths else None,
        max_tokens=lengths[-1] if lengths else None, num_with_tokens=len(lengths),
        num_truncation_known=len(cut) + len(whole), num_truncated=len(cut),
        truncated=_subset(cut), finished=_subset(whole),
        num_empty_known=len(rows), num_empty=0, empty=none, answered=none,
        num_only_thought=0, num_records=len(rows),
        passed=_subset([r for r in rows if r[0] is not None and r[0] >= 1]),
        missed=_subset([r for r in rows if r[0] is not None and r[0] < 1]),
    )  # fmt: skip


def _subset(
    rows: Sequence[tuple[float | None, float | None, bool | None]],
) -> Subset:
    rewards = [reward for reward, _, _ in rows if reward is not None]
    lengths = [tokens for _, tokens, _ in rows if tokens is not None]
    return Subset(
        num_rollouts=len(rewards),
        pass_rate=sum(r >= 1 for r in rewards) / len(rewards) if rewards else None,
        mean_reward=fmean(rewards) if rewards else None,
        mean_tokens=fmean(lengths) if lengths else None, num_with_tokens=len(lengths),
    )  # fmt: skip


def insights_of(
    tasks: Sequence[TaskInsight],
    *,
    findings: Sequence[Finding] = (),
    seconds: float | None = 600.0,
    model: str | None = "a-model-8b",
) -> Insights:
    """Put tasks together."""
    agents = sorted({task.agent for task in tasks})
    planned = sum(task.planned for task in tasks)
    points = [] if seconds is None or not planned else range(1, 101)
    return Insights(
        made_by="gym-reward-profiling 0.1.0", output="rollouts.jsonl", model=model,
        reading=READING, run=a_section(None, tasks),
        agents=tuple(
            a_section(agent, [t for t in tasks if t.agent == agent]) for agent in agents
        ),
        findings=tuple(findings),
        metrics=(MetricSummary(
            name="num_turns", num_rollouts=planned, mean=2.5, std=0.5, min=1.0, max=4.0,
            is_identifier=False,
        ),) if tasks else (),
        has_rollouts=all(task.rollouts is not None for task in tasks),
        completion=tuple(
            CompletionPoint(
                seconds=(seconds or 0.0) * ((p + 1) // 2 / 50) ** 1.2,
                finished=math.ceil(planned * p / 100),
            )
            for p in points
        ),
        tasks=tuple(tasks),
    )  # fmt: skip


def _drawn(
    luck: random.Random, num_tasks: int, repeats: int, reward: Callable[[float], float]
) -> list[TaskInsight]:
    agents = ("exact_match_agent", "multiple_choice_agent", "number_match_agent")
    tasks = []
    for index in range(num_tasks):
        ease = min(max(luck.gauss(0.5, 0.45), 0.0), 1.0)
        tokens = [
            min(round(luck.lognormvariate(6 + 1.2 * (1 - ease), 0.6)), 4096)
            for _ in range(repeats)
        ]
        rewards: list[float | None] = [
            0.0 if length == 4096 else reward(float(luck.random() < ease))
            for length in tokens
        ]
        if luck.random() < 0.1:
            rewards[luck.randrange(repeats)] = None
        tasks.append(a_task(
            index, agents[index % 3], rewards, tokens=tokens,
            label=f"Question {index}: how many of {luck.randrange(100)} apples are left"
            f" when {luck.choice(['Ann', 'Bob', 'Chi'])} has eaten"
            f" {luck.randrange(50)} of them and the rest is shared by four?",
        ))  # fmt: skip
    return tasks


HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\"> & \"quotes\" 'apostrophes'",
    "\u202eright to left\u202c \u200f\u05e9\u05dc\u05d5\u05dd {{ 7 * 7 }} {% raw %}",
    "half a pair \ud83d and a control \x00\x1b[31m character",
    "]]> <!-- a comment --> --!> &lt;b&gt; \u2028 \u2029 \ufeff",
    "long " * 20_000,
    "",
)


def a_hostile_run() -> Insights:
    """Make a run whose every text is out to break a page."""
    tasks = []
    for index, text in enumerate(HOSTILE):
        agent = text + "x" * 65_000 if index == 5 else text
        rewards = [1.0, 0.0, None, float("nan") if index == 3 else 0.5]
        task = a_task(text, agent, rewards, label=text)
        tasks.append(task)
    findings = [
        Finding(
            name="suspect", severity="critical", agent=text, sentence=text * 2,
            evidence={text or "empty": text}, remedy=text,
        )
        for text in HOSTILE
    ]  # fmt: skip
    return insights_of(tasks, findings=findings, model=HOSTILE[0])


SCALES: dict[str, Callable[[float], float]] = {
    "negative": lambda r: 2 * r - 1,
    "hundreds": lambda r: 100 * r,
    "huge": lambda r: 3e12 * r - 1e12,
    "beyond": lambda r: 3.4e300 * (r - 0.5),
    "tiny": lambda r: 2e-7 * r,
    "constant": lambda _: 0.5,
}


def a_run(
    num_tasks: int = 24,
    repeats: int = 8,
    *,
    reward: Callable[[float], float] = float,
    findings: Sequence[Finding] = FINDINGS,
) -> Insights:
    """Make a run of three agents; `reward` maps 0.0 and 1.0 to the reward scale."""
    luck = random.Random(7)  # noqa: S311 - any seed will do
    return insights_of(_drawn(luck, num_tasks, repeats, reward), findings=findings)
