"""The whole page, from insights: its parts and their order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from reward_profiling.insights.document import Insights
from reward_profiling.numerics.figures import setting
from reward_profiling.profiling.finding import Evidence, Finding
from reward_profiling.reporting.page.marks import key_numbers, reward_spread
from reward_profiling.reporting.page.parts import Card, Chart, Page
from reward_profiling.reporting.page.pass_charts import pass_curve, useful_groups
from reward_profiling.reporting.page.run_charts import (
    completion,
    coverage_by_agent,
    reward_against_length,
)
from reward_profiling.reporting.page.tables import agents_table, further_tables
from reward_profiling.reporting.page.task_charts import task_means, task_pass_rates
from reward_profiling.reporting.page.words import (
    SENTENCE_LENGTH,
    UNKNOWN,
    clean,
    count,
    distinct_names,
    number,
    share,
)

_TITLE_NAME = 120


def agent_names(insights: Insights) -> dict[str, str]:
    """Return the shown name of each agent, all of them different."""
    known = [section.agent or "" for section in insights.agents]
    return distinct_names(dict.fromkeys([*known, *(t.agent for t in insights.tasks)]))


def page(insights: Insights, names: Mapping[str, str]) -> Page:
    """Return all that the report says; `names` are those of `agent_names`."""
    drawn = (
        task_means(insights),
        pass_curve(insights),
        task_pass_rates(insights),
        useful_groups(insights),
        coverage_by_agent(insights, names),
        reward_against_length(insights),
        completion(insights),
    )
    return Page(
        title=_title(insights),
        subtitle=_subtitle(insights),
        cards=tuple(_card(finding, names) for finding in insights.findings),
        key_numbers=key_numbers(insights),
        agents=agents_table(insights, names),
        charts=_paired([chart for chart in drawn if isinstance(chart, Chart)]),
        absent=tuple(reason for reason in drawn if isinstance(reason, str)),
        tables=tuple(further_tables(insights, names)),
        reading=_reading(insights),
        made_by=clean(insights.made_by, _TITLE_NAME),
    )


def _paired(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """Return the charts; a narrow one without a neighbour becomes wide."""
    paired: list[Chart] = []
    for is_wide, group in groupby(charts, lambda chart: chart.is_wide):
        run = list(group)
        if not is_wide and len(run) % 2:
            run[-1] = replace(run[-1], is_wide=True)
        paired += run
    return tuple(paired)


def _title(insights: Insights) -> str:
    """Say the result in one sentence: what was tried, and the outcome."""
    run = insights.run
    coverage = run.coverage
    tried = f"{count(coverage.planned, 'rollout')} of"
    tried += f" {count(coverage.num_tasks, 'task')}"
    if coverage.scored < coverage.planned:
        tried = f"{coverage.scored:,} of {tried} scored"
    mean = run.reward.macro_mean
    if mean is None:
        return f"{tried}: no reward is known"
    spread = ""
    if run.reward.interval is not None and run.reward.caution is None:
        spread = f" ({reward_spread(insights, run.reward)})"
    teach = run.signal.num_signal
    judged = teach + run.signal.num_zero_signal
    can = f"; {teach:,} of {judged:,} tasks can teach" if judged else ""
    return f"{tried}: mean reward {number(mean)}{spread}{can}"


def _subtitle(insights: Insights) -> str:
    output = clean(insights.output, _TITLE_NAME) or "rollouts"
    if insights.model is None:
        return f"{output}, model not named"
    return f"{output}, model {clean(insights.model, _TITLE_NAME)}"


def _card(finding: Finding, names: Mapping[str, str]) -> Card:
    return Card(
        name=finding.name,
        severity=finding.severity,
        agent="" if finding.agent is None else names.get(finding.agent, ""),
        sentence=_sentence(finding.sentence),
        remedy=_sentence(finding.remedy),
        evidence=tuple(
            (clean(name, _TITLE_NAME).replace("_", " "), _evidence(value))
            for name, value in finding.evidence.items()
        ),
    )


def _sentence(text: str) -> str:
    """Return text with a capital first letter, but for names such as `num_turns`."""
    shown = clean(text, SENTENCE_LENGTH)
    first = shown.partition(" ")[0]
    return shown[:1].upper() + shown[1:] if first.strip(",;:").isalpha() else shown


def _evidence(value: Evidence) -> str:
    if isinstance(value, str):
        return clean(value, SENTENCE_LENGTH)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if number(value) == UNKNOWN else number(value)


def _reading(insights: Insights) -> tuple[str, ...]:
    """Say how rewards were read: the settings behind every number."""
    reading = insights.reading
    default = (
        "Headline means count failed and unscored rollouts as a reward of 0."
        if reading.failures_as_zero
        else "Headline means cover scored rollouts only, not failed ones."
    )
    passes = (
        f"A rollout passes with a reward of {setting(reading.pass_threshold)} or more"
        f" (less {setting(reading.pass_tolerance)} for rounding)."
    )
    same = (
        f"Rewards that differ by no more than {setting(reading.signal_tolerance)}"
        " are the same."
    )
    errors = (
        f"Intervals are at {share(reading.confidence)}; standard deviations divide by"
        f" n \u2212 {reading.degrees_lost}; errors of means over rollouts are clustered"
        f" by {clean(reading.clusters, _TITLE_NAME)}."
    )
    said = [passes, same, errors, default]
    if reading.leave_out_empty:
        said.append("Records without an answer are left out, like masked records.")
    if reading.answer_field is not None:
        field = clean(reading.answer_field, _TITLE_NAME)
        said.append(f"The field {field} holds the answer that is compared.")
    return tuple(said)
