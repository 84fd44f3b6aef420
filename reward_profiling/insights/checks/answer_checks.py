"""Checks of answers: whether rewards follow them, and whether there are any.

Each looks at one agent and gives a finding or None; with too little to go by, None.
"""

from reward_profiling.insights.checks.agent_part import AgentPart
from reward_profiling.insights.measures.length import Subset
from reward_profiling.insights.table_rows import scored_rows
from reward_profiling.numerics.figures import correlation, percent
from reward_profiling.profiling.finding import Finding
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import NO

_MOSTLY = 0.8
_SHARE = 0.1
"""Share from which such records are a warning."""
_RARE = 0.01
_FEW_TASKS = 5
_NO_CHANCE = 20
"""Tasks in which rewards that follow answers do not stay the same by chance."""
_ENOUGH_TASKS = 8
_ENOUGH_FOR_BIAS = 50
_BIAS = 0.3


def reward_ignores_answer(agent: AgentPart) -> Finding | None:
    """Look for rewards that are set by the task, whatever is answered."""
    table, varied, differing = agent.table, 0, 0
    for unit in agent.units:
        answers = {table.answer[row] for row in scored_rows(table, unit.rows)} - {0}
        if len(answers) > 1:
            varied += 1
            differing += unit.has_signal
    if varied < _ENOUGH_TASKS or differing:
        return None
    return agent.finding(
        "reward_ignores_answer",
        "critical" if varied >= _NO_CHANCE else "warning",
        f"in all {varied} tasks that were answered in different ways every answer got"
        " the same reward, though tasks differ from each other",
        "the reward seems to depend on the task alone: check that the verifier reads"
        " the answer; else these tasks are all far too easy or far too hard",
        tasks_with_different_answers=varied,
    )


def answer_scored_differently(agent: AgentPart) -> Finding | None:
    """Find answers that got different rewards when given again."""
    table, repeated, differing = agent.table, 0, 0
    for unit in agent.units:
        by_answer: dict[int, list[float]] = {}
        for row in scored_rows(table, unit.rows):
            if table.answer[row] and table.empty[row] == NO:
                by_answer.setdefault(table.answer[row], []).append(table.reward[row])
        for rewards in by_answer.values():
            spread = max(rewards) - min(rewards)
            repeated += len(rewards) > 1
            differing += spread > agent.options.signal_tolerance
    if not differing:
        return None
    share = differing / repeated
    return agent.finding(
        "answer_scored_differently",
        "warning" if share >= _SHARE / 2 else "note",
        f"{differing} of {repeated} answers that a task got more than once, to the"
        " letter, were not always given the same reward",
        "a judge that is not sure of itself, a time limit, or state that rollouts"
        " share: its noise is in every number here",
        answers_given_again=repeated,
        rewarded_differently=differing,
    )


def repeats_identical(agent: AgentPart) -> Finding | None:
    """Find tasks whose repeats all gave the same answer."""
    table, told, same = agent.table, 0, 0
    for unit in agent.units:
        rows = [row for row in scored_rows(table, unit.rows) if table.empty[row] == NO]
        answers = [table.answer[row] for row in rows if table.answer[row]]
        if len(answers) >= MIN_ROLLOUTS:
            told += 1
            same += len(set(answers)) == 1
    if told < _FEW_TASKS or same < _MOSTLY * told:
        return None
    return agent.finding(
        "repeats_identical",
        "critical",
        f"in {same} of {told} tasks every repeat gave the same answer to the letter",
        "a temperature of 0, one seed for all repeats, or a cache that answers: such"
        " repeats are one rollout, and their spread of 0 is no certainty",
        tasks=told,
        tasks_with_one_answer=same,
    )


def empty_answers(agent: AgentPart) -> Finding | None:
    """Find records without an answer."""
    length = agent.section.length
    share = length.num_empty / length.num_empty_known if length.num_empty_known else 0.0
    if share < _RARE:
        return None
    return agent.finding(
        "empty_answers",
        "warning" if share >= _SHARE else "note",
        f"{length.num_empty} of {length.num_empty_known} records"
        f" ({percent(share)}) hold no answer: neither text nor a call of a tool",
        "a chat template, a stop word or a reasoning parser may swallow the answer; "
        + (
            "such rollouts were left out"
            if agent.options.leave_out_empty
            else "such rollouts count with the reward they got, unless"
            " --leave-out-empty is given"
        ),
        empty=length.num_empty,
        known=length.num_empty_known,
        mean_reward=length.empty.mean_reward,
    )


def empty_answers_rewarded(agent: AgentPart) -> Finding | None:
    """Find records without an answer that pass."""
    empty = agent.section.length.empty
    passed = round((empty.pass_rate or 0.0) * empty.num_rollouts)
    if not passed:
        return None
    return agent.finding(
        "empty_answers_rewarded",
        "critical",
        f"{passed} of {empty.num_rollouts} records without any answer pass",
        "the verifier accepts nothing as an answer; a model will learn to say nothing",
        empty=empty.num_rollouts,
        passed=passed,
    )


def truncated_answers(agent: AgentPart) -> Finding | None:
    """Find answers that were cut off."""
    length = agent.section.length
    known = length.num_truncation_known
    share = length.num_truncated / known if known else 0.0
    if share < _RARE:
        return None
    rates = [
        f"{name} ones pass {percent(kind.pass_rate)} (n={kind.num_rollouts})"
        for name, kind in (("such", length.truncated), ("whole", length.finished))
        if kind.pass_rate is not None
    ]
    return agent.finding(
        "truncated_answers",
        "warning" if share >= _SHARE else "note",
        f"{length.num_truncated} of {known} answers ({percent(share)}) were cut off"
        + "".join(f"; {rate}" for rate in rates)
        + _lengths(length.truncated, length.finished),
        "raise max_output_tokens, or the context length of the model's server: what a"
        " cut answer would have been is unknown",
        truncated=length.num_truncated,
        known=known,
        pass_rate_truncated=length.truncated.pass_rate,
        pass_rate_finished=length.finished.pass_rate,
        mean_tokens_truncated=length.truncated.mean_tokens,
        mean_tokens_finished=length.finished.mean_tokens,
    )


def _lengths(cut: Subset, whole: Subset) -> str:
    if cut.mean_tokens is None or whole.mean_tokens is None:
        return ""
    cut_off, finished = f"{cut.mean_tokens:,.0f}", f"{whole.mean_tokens:,.0f}"
    return f"; they take {cut_off} tokens on average, whole ones {finished}"


def length_bias(agent: AgentPart) -> Finding | None:
    """Find that longer answers of a task are rewarded differently."""
    found = agent.section.length.correlation
    value = found.within_spearman
    is_told = found.num_rollouts >= _ENOUGH_FOR_BIAS and value is not None
    if not is_told or value is None or abs(value) < _BIAS:
        return None
    word = "more" if value > 0 else "less"
    return agent.finding(
        "length_bias",
        "note",
        f"within a task, longer answers are rewarded {word}: rank correlation"
        f" {correlation(value)} (n={found.num_rollouts} rollouts of"
        f" {found.num_tasks} tasks)",
        "training may change the length of answers for its own sake; look at truncated"
        " answers first",
        within_spearman=value,
        within_pearson=found.within_pearson,
        pooled_pearson=found.pearson,
        rollouts=found.num_rollouts,
    )
